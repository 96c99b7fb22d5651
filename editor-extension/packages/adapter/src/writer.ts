import type { Writable } from "node:stream";
import { encodeFrame, NotSent, type OutFrame } from "./frame.js";
import { MAX_WAITING } from "./limits.js";

interface Waiting {
  readonly frame: OutFrame;
  /** A frame that nobody waits for has none. */
  readonly settle: ((error?: Error) => void) | undefined;
}

/**
 * Writes frames to a stream one after the other, each in one go. A frame is
 * encoded when its turn comes, so that a host that does not read costs no more
 * than what is answered to it.
 */
export class FrameWriter {
  readonly #out: Writable;
  readonly #failed: (error: Error) => void;
  #queue: Waiting[] = [];
  #posted = 0;
  #blocked = false;
  #error: Error | undefined;
  #idle: (() => void)[] = [];

  /** `failed` is called once, when nothing can be written any more. */
  constructor(out: Writable, failed: (error: Error) => void) {
    this.#out = out;
    this.#failed = failed;
    // It stays: a stream without one would end the process.
    out.on("error", (error) => this.fail(error));
    out.on("close", () => {
      if (!out.writableEnded) this.fail(new Error("the output was closed"));
    });
    out.on("drain", () => {
      this.#blocked = false;
      this.#pump();
    });
  }

  /**
   * Writes a frame and waits until the stream has taken it. It rejects with
   * {@link NotSent} for a frame that cannot be sent, and with the stream's error.
   */
  send(frame: OutFrame): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#enqueue({
        frame,
        settle: (error) => (error === undefined ? resolve() : reject(error)),
      });
    });
  }

  /** Writes a frame that nobody waits for. Too many of them are a failure. */
  post(frame: OutFrame): void {
    if (this.#posted >= MAX_WAITING) {
      this.fail(new Error("the other end does not read"));
      return;
    }
    this.#posted++;
    this.#enqueue({ frame, settle: undefined });
  }

  /** Resolves when nothing waits to be written, also because nothing can be. */
  idle(): Promise<void> {
    if (this.#error !== undefined || (this.#queue.length === 0 && !this.#blocked)) {
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Gives up everything that waits. */
  fail(error: Error): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    const waiting = this.#queue;
    this.#queue = [];
    for (const { settle } of waiting) settle?.(error);
    this.#rest();
    this.#failed(error);
  }

  #enqueue(waiting: Waiting): void {
    if (this.#error !== undefined) {
      waiting.settle?.(this.#error);
      return;
    }
    this.#queue.push(waiting);
    this.#pump();
  }

  #pump(): void {
    while (!this.#blocked && this.#error === undefined) {
      const next = this.#queue.shift();
      if (next === undefined) break;
      if (next.settle === undefined) this.#posted--;
      this.#write(next);
    }
    this.#rest();
  }

  #write({ frame, settle }: Waiting): void {
    let pieces: Uint8Array[];
    try {
      pieces = encodeFrame(frame);
    } catch (error) {
      if (!(error instanceof NotSent)) throw error;
      settle?.(error);
      return;
    }
    this.#out.cork();
    for (const piece of pieces) {
      if (!this.#out.write(piece)) this.#blocked = true;
    }
    this.#out.uncork();
    settle?.();
  }

  #rest(): void {
    if (this.#error === undefined && (this.#queue.length > 0 || this.#blocked)) return;
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }
}
