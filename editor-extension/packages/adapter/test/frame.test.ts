import { describe, expect, it } from "vitest";
import { FrameError } from "../src/errors.js";
import { encodeFrame, type Frame, NotSent } from "../src/frame.js";
import { RawJSON } from "../src/json.js";
import { MAX_BANNER, MAX_DEPTH, MAX_FRAME, MAX_RAW } from "../src/limits.js";
import { FrameReader, type ReaderOptions } from "../src/reader.js";

/** Reads the input in pieces of the size. */
function read(
  input: Buffer | string,
  size: number,
  options?: ReaderOptions,
  bulk = false,
): Frame[] {
  const frames: Frame[] = [];
  const reader = new FrameReader((frame) => frames.push(frame), options);
  if (bulk) reader.enableBulk();
  const bytes = Buffer.from(input);
  for (let i = 0; i < bytes.length; i += size) reader.push(bytes.subarray(i, i + size));
  reader.end();
  return frames;
}

const text = (raw: RawJSON | undefined): string => Buffer.from(raw?.bytes ?? []).toString("utf8");

describe("what is a frame", () => {
  const table: [
    string,
    string,
    Partial<Record<"id" | "method" | "token" | "error", string>>,
    string,
  ][] = [
    [
      "a request",
      '{"id":"7","method":"execute","token":"t","data":{"a":1}}',
      { id: "7", method: "execute", token: "t" },
      '{"a":1}',
    ],
    ["blanks", ' {\t"id" : "7" , "data" : [ 1 , 2 ] }\r', { id: "7" }, "[ 1 , 2 ]"],
    [
      "every digit",
      '{"id":"7","data":{"n":12345678901234567890,"z":1.50,"b":{"2":1,"1":2}}}',
      { id: "7" },
      '{"n":12345678901234567890,"z":1.50,"b":{"2":1,"1":2}}',
    ],
    ["escaped names", '{"\\u0069d":"7","data":true}', { id: "7" }, "true"],
    ["braces in strings", '{"id":"}\\"{","data":"],\\\\"}', { id: '}"{' }, '"],\\\\"'],
    [
      "null members",
      '{"id":"7","method":null,"token":null,"error":null,"data":null}',
      { id: "7", method: "", error: "" },
      "",
    ],
    ["unknown members", '{"id":"7","x":{"id":"8"},"id2":[{"data":1}],"data":2}', { id: "7" }, "2"],
    ["raw without bulk", '{"id":"7","raw":"many","body":-1}', { id: "7" }, ""],
    ["an empty object", "{}", { id: "" }, ""],
    [
      "a dangerous name",
      '{"id":"7","__proto__":{"method":"x"},"data":{"__proto__":1}}',
      { id: "7", method: "" },
      '{"__proto__":1}',
    ],
  ];
  for (const [name, line, members, data] of table) {
    it.each([1, 3, 1000])(`${name}, in pieces of %d`, (size) => {
      const [frame, ...more] = read(`${line}\n`, size);
      expect(more).toEqual([]);
      expect(frame).toMatchObject(members);
      expect(text(frame?.data).trim()).toBe(data);
    });
  }
});

describe("what is no frame", () => {
  const deep = "[".repeat(MAX_DEPTH + 1);
  it.each([
    ["nothing", ""],
    ["text", "hello"],
    ["an array", '[{"id":"1"}]'],
    ["a string", '"id"'],
    ["cut short", '{"id":"1"'],
    ["a member too many", '{"id":"1",}'],
    ["two objects", '{"id":"1"}{"id":"2"}'],
    ["something behind", '{"id":"1"} x'],
    ["closed twice", '{"id":"1"}}'],
    ["an id that is a number", '{"id":1}'],
    ["a method that is an object", '{"id":"1","method":{}}'],
    ["the same member twice", '{"id":"1","id":"2"}'],
    ["the same member by escapes", '{"id":"1","\\u0069d":"2"}'],
    ["a control character", '{"id":"a\tb"}'],
    ["a bad escape", '{"id":"\\x"}'],
    ["a bad number", '{"id":"1","data":01}'],
    ["a byte order mark", '\ufeff{"id":"1"}'],
    ["a bracket that does not match", '{"id":"1","data":[}]}'],
    ["too deep", `{"id":"1","data":${deep}${"]".repeat(MAX_DEPTH + 1)}}`],
    ["too deep and unfinished", `{"id":"1","data":${deep}`],
    ["an unfinished string", '{"id":"1'],
  ])("%s", (_, line) => {
    for (const size of [1, 7, 100_000]) expect(() => read(`${line}\n`, size)).toThrow(FrameError);
  });

  it("is anything but UTF-8", () => {
    const line = Buffer.concat([Buffer.from('{"id":"'), Buffer.from([0xff]), Buffer.from('"}\n')]);
    expect(() => read(line, 4)).toThrow("not UTF-8");
  });

  it("is a frame that the end cuts", () => {
    expect(() => read('{"id":"1"}\n{"id"', 5)).toThrow("middle of a frame");
  });

  it("survives any cut and any changed byte of a frame", () => {
    const good = Buffer.from(
      '{"id":"7","method":"x","data":{"a":["\\u00e9\\"é",1e5,true,null]},"raw":3}\nabc',
    );
    for (let i = 0; i < good.length; i++) {
      for (const byte of [0x00, 0x22, 0x5c, 0x7b, 0x7d, 0x5d, 0x0a, 0x3a, 0x2c, 0x39, 0xc3, 0xff]) {
        const bad = Buffer.from(good);
        bad[i] = byte;
        for (const input of [bad, good.subarray(0, i)]) {
          try {
            read(input, 16, {}, true);
          } catch (error) {
            expect(error).toBeInstanceOf(FrameError);
          }
        }
      }
    }
  });
});

describe("limits", () => {
  const padded = (length: number): string => {
    const head = '{"id":"1","data":"';
    return `${head}${"x".repeat(length - head.length - 3)}"}\n`;
  };

  it("takes a frame of 16 MiB with its newline, and none longer", () => {
    expect(read(padded(MAX_FRAME), 65_536)).toHaveLength(1);
    expect(() => read(padded(MAX_FRAME + 1), 65_536)).toThrow("longer than 16 MiB");
  });

  it("gives up on a line without an end before it is too long to hold", () => {
    const reader = new FrameReader(() => undefined);
    const piece = Buffer.alloc(1 << 20, "x");
    let taken = 0;
    expect(() => {
      for (; taken < 64; taken++) reader.push(piece);
    }).toThrow("longer than 16 MiB");
    expect(taken).toBe(15);
  });

  it("sends a frame of 16 MiB, and none longer", () => {
    const frame = (length: number): Uint8Array[] =>
      encodeFrame({ id: "1", data: "x".repeat(length) });
    const overhead = Buffer.concat(frame(0)).length;
    expect(Buffer.concat(frame(MAX_FRAME - overhead))).toHaveLength(MAX_FRAME);
    expect(() => frame(MAX_FRAME - overhead + 1)).toThrow(NotSent);
    expect(() => encodeFrame({ id: "1", raw: Buffer.alloc(MAX_RAW + 1) })).toThrow(NotSent);
    expect(() => encodeFrame({ id: "1", data: 1n })).toThrow(NotSent);
  });

  it("refuses to skip more than 64 KiB before the first frame", () => {
    const banner = `${"welcome\n".repeat(1000)}{"not":"a frame"}\n`;
    const frame = '{"id":"1"}\n';
    expect(read(banner + frame, 100, { banner: true })).toHaveLength(1);
    expect(() =>
      read("x".repeat(80).concat("\n").repeat(1000) + frame, 100, { banner: true }),
    ).toThrow(FrameError);
    expect(() => read(`${frame}then text\n`, 100, { banner: true, quote: true })).toThrow(
      '"then text"',
    );
    expect("x".repeat(80).concat("\n").repeat(1000).length).toBeGreaterThan(MAX_BANNER);
  });

  it("quotes nothing where a line may hold the token", () => {
    expect(() => read("secret\n", 100)).toThrow(/^(?!.*secret)/);
  });
});

describe("raw bytes", () => {
  it.each([1, 2, 5, 1000])("follow their frame, in pieces of %d", (size) => {
    const input = '{"id":"1","method":"body","raw":5}\n\n{"}\n{"id":"2","body":9}\n';
    const [first, second] = read(input, size, {}, true);
    expect(Buffer.from(first?.raw ?? []).toString()).toBe('\n{"}\n');
    expect(second).toMatchObject({ id: "2", body: 9 });
  });

  it.each(["-1", "1.5", `${MAX_RAW + 1}`, '"5"', "1e30"])("are not %s many", (raw) => {
    expect(() => read(`{"id":"1","raw":${raw}}\n`, 10, {}, true)).toThrow(FrameError);
  });
});

describe("what goes out", () => {
  it("is one line, raw data as it came, a null for a reply without data", () => {
    const line = (frame: Parameters<typeof encodeFrame>[0]): string =>
      Buffer.concat(encodeFrame(frame)).toString();
    expect(line({ id: "1" })).toBe('{"id":"1","data":null}\n');
    expect(line({ id: "1", error: "no" })).toBe('{"id":"1","error":"no"}\n');
    expect(line({ id: "1", data: new RawJSON(Buffer.from("1.50")) })).toBe(
      '{"id":"1","data":1.50}\n',
    );
    expect(line({ id: "1", data: "a\nb" })).toBe('{"id":"1","data":"a\\nb"}\n');
    expect(line({ id: "1", method: "body", raw: Buffer.from("ab") })).toBe(
      '{"id":"1","method":"body","raw":2}\nab',
    );
  });
});
