import { setMaxListeners } from "node:events";
import { AdapterError, FrameError } from "./errors.js";
import { BODY_PIECE, BODY_WINDOW } from "./limits.js";
import type { Body } from "./methods.js";

/** A promise that somebody else settles. */
export class Deferred<T> {
  readonly promise: Promise<T>;
  resolve: (value: T) => void = () => undefined;
  reject: (error: Error) => void = () => undefined;

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.promise.catch(() => undefined); // nobody may be waiting yet, or ever
  }
}

/**
 * What aborts a signal that is handed out: as many as want to may listen to it,
 * and Node does not take them for a leak and warn about it on standard error.
 */
export function aborter(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

/**
 * Waits for the promise, and rejects with the reason of the first signal that
 * aborts before. It listens to each of them: what `AbortSignal.any` makes does not
 * keep an `AbortSignal.timeout` alive, which then never comes.
 */
export async function unlessAborted<T>(promise: Promise<T>, ...signals: AbortSignal[]): Promise<T> {
  const aborted = new Deferred<never>();
  const listening = signals.map((signal) => {
    const abort = (): void => aborted.reject(reasonOf(signal));
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    return () => signal.removeEventListener("abort", abort);
  });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    for (const stop of listening) stop();
  }
}

/** Waits for the promise, for at most `ms` milliseconds and while no signal aborts. */
export async function within<T>(
  ms: number,
  promise: Promise<T>,
  ...signals: AbortSignal[]
): Promise<T> {
  const over = aborter();
  const timer = setTimeout(() => over.abort(new Error(`it took longer than ${ms} ms`)), ms);
  try {
    return await unlessAborted(promise, over.signal, ...signals);
  } finally {
    clearTimeout(timer);
  }
}

/** Why a signal has aborted, as an error. */
export function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof Error
    ? signal.reason
    : new AdapterError("cancelled", "the request was cancelled");
}

/** How much the receiver has to have taken before the sender hears of it, in bytes. */
const takenStep = BODY_WINDOW / 4;

/** The receiver's view of one body: filled as frames come, emptied by one reader. */
export class Inbox implements Body {
  readonly size: number;
  readonly #tell: (total: number) => void;
  #pieces: Uint8Array[] = [];
  #got = 0;
  #taken = 0;
  #told = 0;
  #error: Error | undefined;
  #dropping = false;
  #changed = new Deferred<void>();

  /** `tell` lets the sender know how many bytes were taken. */
  constructor(size: number, tell: (total: number) => void) {
    this.size = size;
    this.#tell = tell;
  }

  /** Whether nothing more will come. */
  get complete(): boolean {
    return this.#got === this.size || this.#error !== undefined;
  }

  /** Takes a piece. More than was announced is a {@link FrameError}. */
  receive(piece: Uint8Array): void {
    if (piece.length === 0 || this.#got + piece.length > this.size) {
      throw new FrameError(
        `a piece of ${piece.length} bytes of a body that has ${this.#got} of ${this.size} bytes`,
      );
    }
    this.#got += piece.length;
    if (this.#dropping) this.#took(piece.length);
    else if (this.#got > this.#taken + BODY_WINDOW) {
      throw new FrameError("a body is sent faster than it is taken");
    } else this.#pieces.push(piece);
    this.#wake();
  }

  /** Notes that no more will come. */
  abort(error: Error): void {
    if (this.complete) return;
    this.#error = error;
    this.#wake();
  }

  /** Lets what still comes go by. */
  drop(): void {
    this.#dropping = true;
    for (const piece of this.#pieces.splice(0)) this.#took(piece.length);
  }

  /** Waits for the whole body. */
  async collect(): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.content) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  /** The pieces, as they come. Whoever stops early drops the rest. */
  readonly content: AsyncIterable<Uint8Array> = { [Symbol.asyncIterator]: () => this.#iterate() };

  async *#iterate(): AsyncGenerator<Uint8Array, void> {
    try {
      while (this.#taken < this.size) {
        const piece = this.#pieces.shift();
        if (piece !== undefined) {
          this.#took(piece.length);
          yield piece;
        } else if (this.#error !== undefined) {
          throw this.#error;
        } else {
          await this.#changed.promise;
        }
      }
    } finally {
      this.drop();
    }
  }

  #took(bytes: number): void {
    this.#taken += bytes;
    // The sender hears of it only when it could otherwise have to wait.
    if (this.#told + BODY_WINDOW >= this.size || this.#taken - this.#told < takenStep) return;
    this.#told = this.#taken;
    this.#tell(this.#taken);
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = new Deferred<void>();
  }
}

/** The sender's view of one body. */
export class Outbox {
  readonly #send: (piece: Uint8Array) => Promise<void>;
  #taken = 0;
  #more = new Deferred<void>();

  /** `send` writes one piece, at most {@link BODY_PIECE} bytes. */
  constructor(send: (piece: Uint8Array) => Promise<void>) {
    this.#send = send;
  }

  /** Notes how many bytes the receiver has taken so far. */
  grow(total: number): void {
    if (total <= this.#taken) return;
    this.#taken = total;
    this.#more.resolve();
    this.#more = new Deferred<void>();
  }

  /** Sends the body, never more than the window ahead of the receiver. */
  async sendAll(body: Body, signal: AbortSignal): Promise<void> {
    let sent = 0;
    for await (const bytes of body.content) {
      if (sent + bytes.length > body.size) {
        throw new Error(`the content is longer than the ${body.size} bytes that were announced`);
      }
      for (let i = 0; i < bytes.length; i += BODY_PIECE) {
        const piece = bytes.subarray(i, i + BODY_PIECE);
        while (sent + piece.length > this.#taken + BODY_WINDOW) {
          await unlessAborted(this.#more.promise, signal);
        }
        if (signal.aborted) throw reasonOf(signal);
        await this.#send(piece);
        sent += piece.length;
      }
    }
    if (sent < body.size) {
      throw new Error(`the content ended after ${sent} of ${body.size} bytes`);
    }
  }
}
