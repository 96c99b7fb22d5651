import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Typing, type Writing } from "../src/model/typing.js";
import { ServiceError } from "../src/service/errors.js";

/** A process that reads when it is told to. */
class Reader {
  /** What was written, what happened beside it, in order. */
  readonly got: string[] = [];
  readonly notes: string[] = [];
  private under: { resolve(): void; reject(e: Error): void } | undefined;
  readonly typing = new Typing({
    write: (text) => this.write(text),
    end: async () => void this.got.push("<end>"),
    signal: (name) => this.signal(name),
    note: (text) => void this.notes.push(text),
  });

  /** How a signal ends, where it does not at once. */
  signalled: Promise<void> | undefined;
  refusal: ServiceError | undefined;

  private async signal(name: string): Promise<void> {
    this.got.push(`<${name}>`);
    await this.signalled;
    if (this.refusal !== undefined) {
      throw this.refusal;
    }
  }

  private write(text: string): Writing {
    const done = new Promise<void>((resolve, reject) => {
      const over = () => {
        this.under = undefined;
      };
      this.under = {
        resolve: () => {
          over();
          this.got.push(text);
          resolve();
        },
        reject: (error) => {
          over();
          reject(error);
        },
      };
    });
    const cancelled = new ServiceError("it was cancelled", { kind: "cancelled" });
    return { done, cancel: () => this.under?.reject(cancelled) };
  }

  get stuck(): boolean {
    return this.under !== undefined;
  }

  async read(): Promise<void> {
    this.under?.resolve();
    await vi.advanceTimersByTimeAsync(0);
  }

  async fail(message: string): Promise<void> {
    this.under?.reject(new ServiceError(message, { kind: "timeout" }));
    await vi.advanceTimersByTimeAsync(0);
  }
}

describe("what is typed", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("goes in order, one write at a time, and its end behind it", async () => {
    const reader = new Reader();
    for (const key of "abc") {
      reader.typing.keys(key);
    }
    reader.typing.end();
    await reader.read();
    await reader.read();
    expect(reader.got).toEqual(["a", "bc", "<end>"]);
    expect(reader.stuck).toBe(false);
  });

  it("is cut into pieces, and no character with it", async () => {
    const reader = new Reader();
    const text = `a${"👍".repeat(20_000)}`;
    reader.typing.keys(text);
    while (reader.stuck) {
      await reader.read();
    }
    expect(reader.got.length).toBeGreaterThan(2);
    expect(reader.got.join("")).toBe(text);
    for (const piece of reader.got) {
      expect(Buffer.from(piece).toString()).toBe(piece);
    }
  });

  it.each([
    ["\x03", "^C"],
    ["\x1c", "^\\"],
    ["\x1a", "^Z"],
  ])("has %j in its place where the process reads", async (key) => {
    const reader = new Reader();
    reader.typing.keys(key);
    await reader.read();
    reader.typing.keys("x");
    reader.typing.keys(key);
    await reader.read();
    reader.typing.keys("and more");
    await reader.read();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(reader.got).toEqual([key, "x", key]);
    expect(reader.stuck).toBe(true); // what follows is held up, and interrupted no more
    expect(reader.notes).toEqual([]);
  });

  it.each([
    ["\x03", "^C"],
    ["\x1c", "^\\"],
    ["\x1a", "^Z"],
  ])("is overtaken by %j where it does not", async (key, signal) => {
    const reader = new Reader();
    reader.typing.keys("a paste ".repeat(10_000));
    reader.typing.keys(key);
    await vi.advanceTimersByTimeAsync(499);
    expect(reader.got).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(reader.got).toEqual([`<${signal}>`]);
    expect(reader.notes).toEqual(["what was typed before and not read is dropped"]);
    // What comes then is not behind it.
    reader.typing.keys("y");
    await reader.read();
    expect(reader.got).toEqual([`<${signal}>`, "y"]);
  });

  it("is not overtaken where the process is only far away", async () => {
    const reader = new Reader();
    for (const key of ["a", "b", "\x03"]) {
      reader.typing.keys(key);
      await vi.advanceTimersByTimeAsync(400);
      await reader.read();
    }
    reader.typing.keys("c");
    reader.typing.keys("\x03");
    await vi.advanceTimersByTimeAsync(700);
    await reader.read();
    await vi.advanceTimersByTimeAsync(400);
    await reader.read();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(reader.got).toEqual(["a", "b", "\x03", "c", "\x03"]);
  });

  it("is overtaken soon also where the process was slow before", async () => {
    const reader = new Reader();
    reader.typing.keys("a paste");
    await vi.advanceTimersByTimeAsync(30_000);
    await reader.read();
    reader.typing.keys("another");
    reader.typing.keys("\x03");
    await vi.advanceTimersByTimeAsync(2_999);
    expect(reader.got).toEqual(["a paste"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(reader.got).toEqual(["a paste", "<^C>"]);
  });

  it("does not keep waiting whoever interrupts twice", async () => {
    const reader = new Reader();
    reader.typing.keys("a paste");
    await vi.advanceTimersByTimeAsync(150);
    reader.typing.keys("\x03");
    reader.typing.keys("\x03");
    await vi.advanceTimersByTimeAsync(49);
    expect(reader.got).toEqual([]); // the write may be on its way
    await vi.advanceTimersByTimeAsync(1);
    expect(reader.got).toEqual(["<^C>"]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(reader.got).toEqual(["<^C>"]);
  });

  it("is not dropped where it comes behind an interrupt", async () => {
    const reader = new Reader();
    let sent!: () => void;
    reader.signalled = new Promise((resolve) => {
      sent = resolve;
    });
    reader.typing.keys("a paste");
    reader.typing.keys("\x03");
    reader.typing.keys("b"); // while the key may still arrive
    await vi.advanceTimersByTimeAsync(500);
    expect(reader.got).toEqual(["<^C>"]);
    // What is far away has given up the write, and has not said yet that it sent the signal.
    await reader.fail("an interrupt overtook it");
    reader.typing.keys("c");
    reader.typing.keys("\x03");
    expect(reader.stuck).toBe(false);
    reader.typing.keys("d");
    sent();
    await vi.advanceTimersByTimeAsync(0);
    await reader.read();
    await reader.read();
    expect(reader.got).toEqual(["<^C>", "bc\x03", "d"]);
    expect(reader.notes).toEqual(["what was typed before and not read is dropped"]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(reader.got).toHaveLength(3);
  });

  it("waits for a signal that goes ahead of it", async () => {
    const reader = new Reader();
    let sent!: () => void;
    reader.signalled = new Promise((resolve) => {
      sent = resolve;
    });
    reader.typing.text("a line\n");
    reader.typing.interrupt("SIGINT");
    reader.typing.text("another\n");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(reader.stuck).toBe(false);
    sent();
    await vi.advanceTimersByTimeAsync(0);
    await reader.read();
    expect(reader.got).toEqual(["<SIGINT>", "another\n"]);
  });

  it("has interrupts one after the other, each with what stands between them", async () => {
    const reader = new Reader();
    let sent!: () => void;
    reader.signalled = new Promise((resolve) => {
      sent = resolve;
    });
    reader.typing.keys("a paste");
    reader.typing.keys("\x03");
    await vi.advanceTimersByTimeAsync(500);
    for (const key of ["b", "\x1a", "c", "\x1c", "d"]) {
      reader.typing.keys(key);
    }
    await vi.advanceTimersByTimeAsync(500);
    expect(reader.got).toEqual(["<^C>"]);
    sent();
    reader.signalled = undefined;
    await vi.advanceTimersByTimeAsync(0);
    expect(reader.got).toEqual(["<^C>", "<^\\>"]);
    await reader.read();
    expect(reader.got).toEqual(["<^C>", "<^\\>", "d"]);
  });

  it("stays where it is where a program reads the key", async () => {
    const reader = new Reader();
    const paste = "a paste ".repeat(10_000);
    const none = "the terminal makes no signal of ^C";
    reader.refusal = new ServiceError(none, { kind: "unsupported" });
    reader.typing.keys(paste);
    reader.typing.keys("\x03");
    reader.typing.keys("\x03");
    await vi.advanceTimersByTimeAsync(200);
    expect(reader.got).toEqual(["<^C>"]);
    while (reader.stuck) {
      await reader.read();
    }
    expect(reader.got.slice(1).join("")).toBe(`${paste}\x03\x03`);
    expect(reader.notes).toEqual([]);
  });

  it("tells of a signal that fails, and does not wait for it any more", async () => {
    const reader = new Reader();
    reader.refusal = new ServiceError("it cannot be reached");
    reader.typing.keys("a");
    reader.typing.keys("\x03");
    await vi.advanceTimersByTimeAsync(500);
    expect(reader.notes).toEqual(["it cannot be reached"]);
    await reader.read();
    await reader.read();
    expect(reader.got).toEqual(["<^C>", "a", "\x03"]);
  });

  it.each([
    ["unsupported", []],
    ["internal", ["it cannot be reached"]],
  ] as const)(
    "has a hole where a write fails and an interrupt is refused as %s",
    async (kind, said) => {
      const reader = new Reader();
      reader.refusal = new ServiceError("it cannot be reached", { kind });
      let sent!: () => void;
      reader.signalled = new Promise((resolve) => {
        sent = resolve;
      });
      reader.typing.keys("a");
      reader.typing.keys("\x03");
      await vi.advanceTimersByTimeAsync(500);
      await reader.fail("it does not read its input");
      reader.typing.keys("b");
      sent();
      await vi.advanceTimersByTimeAsync(0);
      expect(reader.stuck).toBe(false);
      expect(new Set(reader.notes)).toEqual(
        new Set([...said, "it does not read its input", "what was typed after it is dropped"]),
      );
      reader.typing.keys("c");
      await reader.read();
      expect(reader.got).toEqual(["<^C>", "c"]);
    },
  );

  it("has an interrupt that goes at once where it was behind a hole", async () => {
    const reader = new Reader();
    reader.typing.keys("a");
    reader.typing.keys("b\n");
    reader.typing.keys("\x03");
    reader.typing.keys("c");
    await reader.fail("it does not read its input");
    await reader.read();
    expect(reader.got).toEqual(["<^C>", "c"]);
    expect(reader.notes).toEqual([
      "it does not read its input",
      "what was typed after it is dropped",
    ]);
  });

  it("is overtaken also where a write cannot be given up", async () => {
    const got: string[] = [];
    const typing = new Typing({
      write: () => ({ done: new Promise(() => undefined), cancel: () => undefined }),
      end: async () => undefined,
      signal: async (name) => void got.push(name),
      note: () => undefined,
    });
    typing.keys("a paste");
    typing.interrupt("SIGINT");
    await vi.advanceTimersByTimeAsync(199);
    expect(got).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(got).toEqual(["SIGINT"]);
  });

  it("has no end any more that was asked for before an interrupt", async () => {
    const reader = new Reader();
    reader.typing.text("a line\n");
    reader.typing.end();
    reader.typing.interrupt("SIGINT");
    await vi.advanceTimersByTimeAsync(0);
    expect(reader.got).toEqual(["<SIGINT>"]);
    reader.typing.text("another\n");
    await reader.read();
    expect(reader.got).toEqual(["<SIGINT>", "another\n"]);
  });

  it("ends with a write that fails: nothing follows a hole", async () => {
    const reader = new Reader();
    reader.typing.keys("a");
    reader.typing.keys("bc");
    await reader.fail("it does not read its input");
    expect(reader.notes).toEqual([
      "it does not read its input",
      "what was typed after it is dropped",
    ]);
    reader.typing.keys("d");
    await reader.read();
    expect(reader.got).toEqual(["d"]);
  });

  it("has a limit, which is told once", async () => {
    const reader = new Reader();
    const much = "x".repeat(9 << 20);
    for (let i = 0; i < 4; i++) {
      reader.typing.keys(much);
    }
    expect(reader.notes).toEqual([
      "the process does not read what is typed: 16 MiB wait, and no more is taken",
    ]);
    reader.typing.dispose();
    await vi.advanceTimersByTimeAsync(0);
    expect(reader.got).toEqual([]);
    expect(reader.notes).toHaveLength(1);
  });
});
