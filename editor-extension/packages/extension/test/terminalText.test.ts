import { describe, expect, it } from "vitest";
import { note, TerminalText } from "../src/model/terminalText.js";

describe("TerminalText", () => {
  it.each([
    ["the clipboard", "a\x1b]52;c;aGk=\x07b", "ab"],
    ["a question for the clipboard", "a\x1b]52;c;?\x1b\\b", "a\x1b\\b"],
    ["a start in one character", "a\x9d52;c;?\x9cb", "ab"],
    ["zeros before the number", "a\x1b]0052;c;?\x07b", "ab"],
    ["controls in the number", "a\x1b]5\x012;c;?\x07b", "ab"],
    ["controls before the bracket", "a\x1b\n]52;c;?\x07b", "a\nb"],
    ["an escape before the escape", "a\x1b\x1b]52;c;?\x07b", "a\x1bb"],
    ["a command in a command", "a\x1b]2;t\x1b]52;c;?\x07b", "a\x1b]2;tb"],
    ["a command in a dropped one", "a\x1b]52;c;\x9d52;c;?\x07b", "ab"],
    ["a command of the editor", "a\x1b]633;E;rm -rf ~;nonce\x07b", "ab"],
    ["one without a payload", "a\x1b]133\x07b", "ab"],
    ["one without a number", "a\x1b];x\x07b", "ab"],
    ["a number without an end", `a\x1b]${"1".repeat(1000)};x\x07b`, "ab"],
    ["what is never ended", "a\x1b]52;c;rest", "a"],
  ])("leaves out %s", (_, output, shown) => {
    expect(new TerminalText().pass(output)).toBe(shown);
    const text = new TerminalText();
    expect([...output].map((c) => text.pass(c)).join("")).toBe(shown);
  });

  it.each([
    "plain ünïcode 👍\r\n\ttext",
    "\x1b[31mred\x1b[0m \x1b[2J\x1b(B\x1b7\x1b8\x1b\\",
    "\x1b]8;;https://example.com\x07link\x1b]8;;\x1b\\",
    "\x1b]0;a title\x07\x1b]11;?\x1b\\\x1b]104\x07\x9d2;t\x9c",
    "\x1bP1$r0m\x1b\\",
  ])("shows %j as it is", (output) => {
    expect(new TerminalText().pass(output)).toBe(output);
    const text = new TerminalText();
    expect([...output].map((c) => text.pass(c)).join("")).toBe(output);
  });
});

describe("note", () => {
  it("shows the words of others and lets them command nothing", () => {
    const shown = note("failed: \x1b]52;c;aGk=\x07\x9d633;E;x\x9c\nnext");
    expect(shown).toBe(
      "\r\n\x1b[2m[failed: \\u{1b}]52;c;aGk=\\u{7}\\u{9d}633;E;x\\u{9c}\r\nnext]\x1b[0m\r\n",
    );
  });
});
