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
    signal: async (name) => void this.got.push(`<${name}>`),
    note: (text) => void this.notes.push(text),
  });

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
    ["\x03", "SIGINT"],
    ["\x1c", "SIGQUIT"],
    ["\x1a", "SIGTSTP"],
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
    ["\x03", "SIGINT"],
    ["\x1c", "SIGQUIT"],
    ["\x1a", "SIGTSTP"],
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
    expect(reader.got).toEqual(["a paste", "<SIGINT>"]);
  });

  it("does not keep waiting whoever interrupts twice", async () => {
    const reader = new Reader();
    reader.typing.keys("a paste");
    reader.typing.keys("\x03");
    reader.typing.keys("\x03");
    await vi.advanceTimersByTimeAsync(0);
    expect(reader.got).toEqual(["<SIGINT>"]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(reader.got).toEqual(["<SIGINT>"]);
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
