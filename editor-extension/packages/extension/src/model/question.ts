import { wide } from "./line.js";
import { visible } from "./shown.js";

/** How much of a call stands somewhere. */
export interface Room {
  /** On the screen, where a line goes on below when its columns are full. */
  lines: number;
  columns: number;
  characters: number;
}

/**
 * What fits a modal question, which cannot be scrolled: more would push its buttons out of
 * a window of 400 points, beside what else stands in it. A dialog of the editor has about
 * so many columns.
 */
export const inQuestion: Room = { lines: 4, columns: 50, characters: 200 };

/** What fits above that of why it is asked. */
export const inReason: Room = { lines: 2, columns: 50, characters: 100 };

/** What fits a question in which nothing else stands. */
export const inDetail: Room = { lines: 8, columns: 50, characters: 400 };

/** How much of the names of a profile and a folder stands in a question, in characters. */
const inName = 20;

/** What fits a hover over a line of a list. */
export const inHover: Room = { lines: 12, columns: 50, characters: 600 };

/** What stands in a place that can be scrolled. */
export const inList: Room = { lines: 1000, columns: Number.POSITIVE_INFINITY, characters: 50_000 };

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
  const rows = lines.reduce((sum, line) => sum + rowsOf(line, room), 0);
  if (rows <= room.lines && text.length <= room.characters) {
    return { text, whole: true };
  }
  const head = fitting(lines, room, (line, count) => line.slice(0, count)).join("\n");
  const tail = fitting([...lines].reverse(), room, (line, count) => line.slice(-count))
    .reverse()
    .join("\n");
  // The two may meet in a text of few lines.
  const left = Math.max(0, text.length - head.length - tail.length);
  return { text: `${head}\n… ${left} characters are not shown here …\n${tail}`, whole: false };
}

/** The beginning of a text that is too long for the room. */
export function clip(text: string, room: Room): string {
  const atMost = Math.min(room.characters, room.lines * columnsFor(text, room));
  return text.length <= atMost ? text : `${whole(text.slice(0, atMost - 1))}…`;
}

/** Where a call would run, in a question. */
export function placeName(profile: string, folder: string): string {
  const [a, b] = [profile, folder].map((text) =>
    clip(text, { lines: 1, columns: inName, characters: inName }),
  );
  return `${a} (${b})`;
}

/** The text without half a character at its end. */
function whole(text: string): string {
  return text.replace(/[\ud800-\udbff]$/, "");
}

/** How many characters of the text a line of the screen has: of wide ones there are fewer. */
function columnsFor(text: string, { columns }: Room): number {
  return wide.test(text) ? columns / 2 : columns;
}

/** How many lines of the screen a line takes. */
function rowsOf(line: string, room: Room): number {
  return Math.max(1, Math.ceil(line.length / columnsFor(line, room)));
}

/** As much of the lines as half of the room takes, of the last one a part. */
function fitting(
  lines: readonly string[],
  room: Room,
  part: (line: string, characters: number) => string,
): string[] {
  const taken: string[] = [];
  let rows = room.lines / 2;
  let characters = room.characters / 2;
  for (const line of lines) {
    if (rows <= 0 || characters <= 0) {
      break;
    }
    const fits = part(line, Math.min(characters, rows * columnsFor(line, room)));
    taken.push(fits);
    rows -= rowsOf(fits, room);
    characters -= fits.length + 1;
  }
  return taken;
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
