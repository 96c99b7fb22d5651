import { visible } from "./shown.js";

/** How much of a call stands somewhere. */
export interface Room {
  lines: number;
  characters: number;
}

/** What fits a modal question: more would push its buttons away. */
export const inQuestion: Room = { lines: 10, characters: 600 };

/** What stands in a place that can be scrolled. */
export const inList: Room = { lines: 1000, characters: 50_000 };

/** What would run: the command as it stands and the other arguments, with nothing unseen. */
export function callText(given: Record<string, unknown>): string {
  const { command, ...others } = given;
  if (typeof command !== "string") {
    return visible(JSON.stringify(given, null, 2));
  }
  const rest = Object.keys(others).length === 0 ? "" : `\n\n${JSON.stringify(others, null, 2)}`;
  return visible(command + rest);
}

/** A part of a text, and whether it is all of it. */
export interface Excerpt {
  text: string;
  whole: boolean;
}

/**
 * The beginning and the end of a text that is too long for a question, with what is
 * left out said in between: what is not seen must not be allowed unknowingly.
 */
export function excerpt(text: string, room: Room): Excerpt {
  const lines = text.split("\n");
  if (lines.length <= room.lines && text.length <= room.characters) {
    return { text, whole: true };
  }
  const half = room.characters / 2;
  const head = lines
    .slice(0, room.lines / 2)
    .join("\n")
    .slice(0, half);
  const tail = lines
    .slice(-room.lines / 2)
    .join("\n")
    .slice(-half);
  // The two may meet in a text of few lines.
  const left = Math.max(0, text.length - head.length - tail.length);
  return { text: `${head}\n… ${left} characters are not shown here …\n${tail}`, whole: false };
}

/** What the service says where it left out the middle of a text. */
const leftOut = /\[\d+ bytes cut\]/;

/** What to say of a call of which the service has not told all, which then nobody sees; "" of others. */
export function unseenPart(text: string): string {
  const mark = leftOut.exec(text)?.[0];
  return mark === undefined ? "" : `Nobody can see the part of it where ${mark} stands.`;
}

/** The text for a dialog, which would join neighbouring spaces: what stands apart stays apart. */
export function keepSpaces(text: string): string {
  return text.replace(/^ | {2}/gm, (spaces) => (spaces.length === 1 ? "\u00a0" : " \u00a0"));
}
