/** How long a name may be in a list or a message, in characters. */
const maxName = 200;

/**
 * What a person would not see, or not where it stands: controls, what turns the
 * direction of writing, fillers without a glyph, spaces that are none, line ends
 * that look like nothing.
 */
const unseen =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/** Of them, what only makes one picture of several, as an emoji's parts are. */
const joining =
  /(?<=\p{Extended_Pictographic})\ufe0f|(?<=[0-9#*])\ufe0f(?=\u20e3)|(?<=\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?)\u200d(?=\p{Extended_Pictographic})/u;

const unseenInName = new RegExp(`(?!${joining.source})(?:${unseen.source})`, "gu");

/** The text with a name like \u{202e} for each character that cannot be seen; line ends and tabs stay. */
export function visible(text: string): string {
  return named(text, unseen);
}

function named(text: string, characters: RegExp): string {
  return text.replace(characters, (c) => (c === "\n" || c === "\t" ? c : codeOf(c)));
}

function codeOf(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** A text of others as a name in one line: all of it can be seen, and it has an end. */
export function name(text: string): string {
  const line = named(text.replace(/\r?\n/g, "⏎").replaceAll("\t", " "), unseenInName);
  const characters = [...line];
  return characters.length <= maxName ? line : `${characters.slice(0, maxName).join("")}…`;
}

/**
 * A text of others as a part of a path, whose last one the editor shows as a tab's title: all
 * of it can be seen, and nothing is lost.
 */
export function inPath(part: string): string {
  return part.replace(/\\(?=u\{)/g, "\\u{5c}").replace(unseenInName, codeOf);
}

/** What became that part of a path, or several of them. */
export function fromPath(path: string): string {
  return path.replace(/\\u\{(10[0-9a-f]{4}|[0-9a-f]{1,5})\}/g, (_, code: string) =>
    String.fromCodePoint(Number.parseInt(code, 16)),
  );
}

/** The text for a narrow view, where a path may be broken at its parts: what is wider is cut off. */
export function breakable(text: string): string {
  return text.replace(/(?<=[^\s][/._:-])(?=[^\s])/g, "\u200b");
}

/** A text of others as the name of a file that is written: what cannot be seen is not in it. */
export function fileName(text: string): string {
  return text.replace(unseenInName, "_");
}

/**
 * The text for a message of the editor, which makes links of what looks like one:
 * a process must not be able to put a command of the editor under a label.
 */
export function message(text: string): string {
  return text.replaceAll("](", "]\u2060(");
}

/** The text for a list or the status bar, which make pictures of what looks like $(name). */
export function withoutIcons(text: string): string {
  return text.replace(/\$\([a-z0-9-]+(?:~[a-z]+)?\)/gi, "\\$&");
}
