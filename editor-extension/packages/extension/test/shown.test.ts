import { describe, expect, it } from "vitest";
import {
  callText,
  clip,
  excerpt,
  inQuestion,
  inReason,
  keepSpaces,
  placeName,
  unseenPart,
} from "../src/model/question.js";
import {
  breakable,
  fileName,
  fromPath,
  inPath,
  message,
  name,
  visible,
  withoutIcons,
} from "../src/model/shown.js";

describe("what others wrote", () => {
  it.each([
    ["plain ünï 文字 👍", "plain ünï 文字 👍"],
    ["a\n\tb", "a\n\tb"],
    ["a\u202eb", "a\\u{202e}b"], // turns the direction
    ["rm\u200b -rf", "rm\\u{200b} -rf"], // no width
    ["x\x1b[2Ky\rz\x07", "x\\u{1b}[2Ky\\u{d}z\\u{7}"],
    ["a\u{e0041}b\u3164c\u2800d", "a\\u{e0041}b\\u{3164}c\\u{2800}d"], // no glyph
    ["a\u00a0b\u2003c\u2028d", "a\\u{a0}b\\u{2003}c\\u{2028}d"], // like a space, or a line's end
    ["\ud800", "\\u{d800}"],
  ])("%j is seen as %s", (text, seen) => {
    expect(visible(text)).toBe(seen);
  });

  it("is a name of one line with an end", () => {
    expect(name("make\r\nclean\tall\x00")).toBe("make⏎clean all\\u{0}");
    expect(name("👍".repeat(300))).toBe(`${"👍".repeat(200)}…`);
  });

  it("has its emoji in its name, and nothing unseen behind them", () => {
    const emoji = "👩‍👩‍👧 ⚠️ 👩🏽‍💻 1️⃣";
    expect(name(emoji)).toBe(emoji);
    expect(name("a\ufe0f 1\ufe0f b\u200dc ⚠\u200d")).toBe(
      "a\\u{fe0f} 1\\u{fe0f} b\\u{200d}c ⚠\\u{200d}",
    );
    // What would run is told to the byte.
    expect(visible("⚠\ufe0f")).toBe("⚠\\u{fe0f}");
  });

  it.each([
    ["plain ünï 👩‍👩‍👧.md", "plain ünï 👩‍👩‍👧.md"],
    ["invoice\u202egpj.exe", "invoice\\u{202e}gpj.exe"],
    ["two\nlines\t\x00", "two\\u{a}lines\\u{9}\\u{0}"],
    ["\\u{202e} \\ud \\", "\\u{5c}u{202e} \\ud \\"], // looks like one of them
    ["\u{10ffff}\ud800", "\\u{10ffff}\\u{d800}"],
  ])("%j is seen in a path as %s, and found by it", (part, seen) => {
    expect(inPath(part)).toBe(seen);
    expect(fromPath(`/a/${seen}`)).toBe(`/a/${part}`);
  });

  it("is read from a path that nobody made so", () => {
    expect(fromPath("/a\u202eb/\\u{110000}\\u{}")).toBe("/a\u202eb/\\u{110000}\\u{}");
  });

  it("is broken in a narrow view where a path has parts", () => {
    const parts = breakable("Wrong: /home/a_b/config.json:14:9: a.b. No.").split("\u200b");
    expect(parts).toEqual([
      "Wrong: /home/",
      "a_",
      "b/",
      "config.",
      "json:",
      "14:",
      "9: a.",
      "b. No.",
    ]);
  });

  it("is a file's name without what cannot be seen", () => {
    expect(fileName("in\u202evoice\n.txt")).toBe("in_voice_.txt");
  });

  it("is no link of a message", () => {
    const link = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)/; // what the editor looks for
    const text = "[look](command:workbench.action.quit) [here](https://example.com)";
    expect(text).toMatch(link);
    expect(message(text)).not.toMatch(link);
    expect(message("a [plain] (text)")).toBe("a [plain] (text)");
  });

  it("is no icon of a list", () => {
    expect(withoutIcons("echo $(trash) $(sync~spin) $(cat x)")).toBe(
      "echo \\$(trash) \\$(sync~spin) $(cat x)",
    );
  });
});

/** How many lines of a dialog the text takes. */
function rows(text: string): number {
  return text
    .split("\n")
    .reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / inQuestion.columns)), 0);
}

describe("a question about a call", () => {
  it("has the command as it stands, and everything beside it", () => {
    expect(callText({ command: "echo a;\necho b" })).toBe("echo a;\necho b");
    expect(callText({ command: "ls", cwd: "/\u202e" })).toBe('ls\n\n{\n  "cwd": "/\\u{202e}"\n}');
    expect(callText({ path: "x" })).toBe('{\n  "path": "x"\n}');
  });

  it("shows a short one whole", () => {
    expect(excerpt("a\nb", inQuestion)).toEqual({ text: "a\nb", whole: true });
  });

  it.each([
    ["by its length", `echo begin${"; x=aaaa".repeat(1000)}; rm end`],
    ["by its lines", `echo begin${"\n".repeat(5000)}rm end`],
  ])("shows both ends of what is too long %s, and says how much is not there", (_, text) => {
    const shown = excerpt(text, inQuestion);
    expect(shown.whole).toBe(false);
    expect(shown.text).toMatch(/^echo begin/);
    expect(shown.text).toMatch(/rm end$/);
    expect(shown.text).toMatch(/… \d+ characters are not shown here …/);
    expect(shown.text.length).toBeLessThan(260);
    expect(rows(shown.text)).toBeLessThanOrEqual(5);
  });

  it("leaves its buttons in the window, also where each line goes on below", () => {
    const lines = Array.from({ length: 12 }, (_, i) => `echo ${`word${i} `.repeat(9)}`);
    const shown = excerpt(lines.join("\n"), inQuestion);
    expect(shown.whole).toBe(false);
    expect(rows(shown.text)).toBeLessThanOrEqual(5);
    expect(shown.text).toMatch(/^echo word0 [\s\S]*word11 $/);
    expect(excerpt("a\n".repeat(4).trim(), inQuestion).whole).toBe(true);
    const broad = excerpt("漢".repeat(150), inQuestion);
    expect(broad.whole).toBe(false);
    expect(broad.text.length).toBeLessThan(140);
  });

  it("has names and a reason of which none takes its room", () => {
    expect(placeName("isolated", "project")).toBe("isolated (project)");
    expect(placeName("p".repeat(99), "f".repeat(255)).length).toBeLessThanOrEqual(43);
    expect(clip("Somebody looks at this.", inReason)).toBe("Somebody looks at this.");
    expect(clip("r".repeat(500), inReason)).toBe(`${"r".repeat(99)}…`);
    expect(clip("👍".repeat(80), inReason)).toBe(`${"👍".repeat(24)}…`);
  });

  it("says of which part nobody can know", () => {
    expect(unseenPart("a… [123 bytes cut] …b")).toContain("where [123 bytes cut] stands");
    expect(unseenPart("cut -b 1 [bytes cut]")).toBe("");
  });

  it("keeps what stands apart", () => {
    expect(keepSpaces(" a\n    b   c")).toBe("\u00a0a\n\u00a0 \u00a0 b \u00a0 c");
  });
});
