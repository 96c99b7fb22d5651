import { describe, expect, it } from "vitest";
import { Line } from "../src/model/line.js";

/** What is shown of the keys, and what is done. */
function typed(line: Line, keys: string) {
  const edited = line.type(keys);
  return {
    echo: edited.map((e) => e.echo).join(""),
    sent: edited.flatMap((e) => (e.sent === undefined ? [] : [e.sent])),
    asked: edited.flatMap((e) => (e.asked === undefined ? [] : [e.asked])),
  };
}

describe("Line", () => {
  it("sends a line with Enter", () => {
    const line = new Line();
    expect(typed(line, "né👍")).toEqual({ echo: "né👍", sent: [], asked: [] });
    expect(typed(line, "\x7f\x7f\x7f\x7fok\r")).toEqual({
      echo: `${"\b \b".repeat(4)}ok\r\n`, // the last one of the three is wide
      sent: ["ok\n"],
      asked: [],
    });
  });

  it.each([
    ["a", 1],
    ["日", 2],
    ["한", 2],
    ["Ａ", 2],
    ["𠀀", 2],
    ["👍", 2],
    ["→", 1],
    ["\u0301", 0], // stands on the one before it
  ])("takes %s from the screen, which has %i columns", (character, columns) => {
    const line = new Line();
    typed(line, `x${character}`);
    expect(typed(line, "\x7f").echo).toBe("\b \b".repeat(columns));
    typed(line, character);
    expect(typed(line, "\x15").echo).toBe("\b \b".repeat(columns + 1));
  });

  it.each(["\x1b[D", "\x1bOA", "\x1b[1;5C", "\x1b[3~", "\x1bb", "\x1b", "\x1b]"])(
    "takes the key %j for no text",
    (key) => {
      expect(typed(new Line(), `a${key}`).echo).toBe("a");
      expect(typed(new Line(), `${key}\r`).sent).toEqual(["\n"]);
    },
  );

  it.each(["\x1b]11;rgb:1818/1818/1818\x1b\\", "\x1b]11;rgb:18/18/18\x07", "\x1bP1$r0m\x1b\\"])(
    "takes the terminal's answer %j for no text",
    (answer) => {
      expect(typed(new Line(), `a${answer}b\r`).sent).toEqual(["ab\n"]);
    },
  );

  it("takes a paste of several lines", () => {
    const { sent } = typed(new Line(), "\x1b[200~one\ntwo\r\nthree\r\x1b[201~");
    expect(sent).toEqual(["one\n", "two\n", "three\n"]);
  });

  it("removes the line, interrupts and ends", () => {
    const line = new Line();
    expect(typed(line, "ab\x15\r").sent).toEqual(["\n"]);
    expect(typed(line, "ab\x03")).toMatchObject({ asked: ["interrupt"], sent: [] });
    expect(typed(line, "ab\x04")).toMatchObject({ asked: [], sent: ["ab"] });
    expect(typed(line, "\x04")).toMatchObject({ asked: ["end"], sent: [] });
  });
});
