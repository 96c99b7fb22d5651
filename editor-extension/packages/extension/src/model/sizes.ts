import { name } from "./shown.js";
import { bytes } from "./words.js";

/**
 * The largest file that is given to the editor whole, in bytes: this process and the window
 * have it in memory several times.
 */
export const maxWhole = 64 << 20;

/** The largest files that are compared, in bytes: the editor itself compares none beyond 50 MB. */
export const maxCompared = 16 << 20;

/** What is wrong with giving the file to the editor whole, and what to do instead; "" for nothing. */
export function tooLargeToShow(file: string, size: number, instead: string): string {
  return size <= maxWhole
    ? ""
    : `${name(file)} has ${bytes(size)}, and at most ${bytes(maxWhole)} are shown whole: ${instead}.`;
}

/** What is wrong with comparing files of these sizes; "" for nothing. */
export function tooLargeToCompare(files: readonly { name: string; size: number }[]): string {
  const large = files.filter(({ size }) => size > maxCompared);
  if (large.length === 0) {
    return "";
  }
  // Versions of one file are called the same.
  const sizes = [...new Set(large.map((file) => `${name(file.name)} (${bytes(file.size)})`))];
  return `Too large to compare: ${sizes.join(" and ")}. At most ${bytes(maxCompared)} of each are compared; save both to compare them whole.`;
}
