import { FrameError } from "./errors.js";
import { type Frame, parseLine } from "./frame.js";
import { MAX_BANNER, MAX_FRAME, QUOTED_HEAD } from "./limits.js";

/** Choices of a {@link FrameReader}. */
export interface ReaderOptions {
  /** Lines that are no frames are dropped before the first that is one, up to 64 KiB. */
  readonly banner?: boolean;
  /** Errors quote the head of what was no frame; not for lines that hold a token. */
  readonly quote?: boolean;
}

const newline = 0x0a;

/**
 * Makes frames of the pieces of a stream. It holds one unfinished frame and the
 * raw bytes of one, and no more.
 */
export class FrameReader {
  readonly #take: (frame: Frame) => void;
  readonly #options: ReaderOptions;
  #bulk = false;
  #banner: number;
  /** What has come of an unfinished line, or of raw bytes; grown as bytes come. */
  #buffer = Buffer.alloc(0);
  #length = 0;
  /** The frame whose raw bytes are coming, and how many. */
  #waiting: { frame: Frame; rawLength: number } | undefined;

  /** `take` gets every frame, in order and before the bytes behind it are looked at. */
  constructor(take: (frame: Frame) => void, options: ReaderOptions = {}) {
    this.#take = take;
    this.#options = options;
    this.#banner = options.banner === true ? MAX_BANNER : -1;
  }

  /** From here on frames may have bodies. */
  enableBulk(): void {
    this.#bulk = true;
  }

  /** Takes the next piece of the stream. What is no frame is a {@link FrameError}. */
  push(piece: Buffer): void {
    let rest = piece;
    while (rest.length > 0) {
      rest = this.#waiting === undefined ? this.#line(rest) : this.#raw(rest, this.#waiting);
    }
  }

  /** Takes the end of the stream; in the middle of a frame it is a {@link FrameError}. */
  end(): void {
    if (this.#length > 0 || this.#waiting !== undefined) {
      throw this.#error(
        "the input ended in the middle of a frame",
        this.#buffer.subarray(0, this.#length),
      );
    }
  }

  /** Takes bytes up to the end of a line, and returns those behind it. */
  #line(bytes: Buffer): Buffer {
    const end = bytes.indexOf(newline);
    const piece = end < 0 ? bytes : bytes.subarray(0, end);
    // The newline counts, so a line must be shorter than a frame.
    if (this.#length + piece.length >= MAX_FRAME) {
      throw this.#error("a frame longer than 16 MiB", this.#length > 0 ? this.#buffer : piece);
    }
    if (end < 0) {
      this.#keep(piece);
      return bytes.subarray(bytes.length);
    }
    this.#parse(this.#flush(piece));
    return bytes.subarray(end + 1);
  }

  #parse(line: Buffer): void {
    try {
      const { frame, rawLength } = parseLine(line, this.#bulk);
      if (this.#banner >= 0 && frame.id === "" && frame.method !== "process") {
        throw new FrameError("an object that is no frame");
      }
      this.#banner = -1;
      if (rawLength > 0) this.#waiting = { frame, rawLength };
      else this.#take(frame);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#banner -= line.length + 1;
      if (this.#banner < 0) throw this.#error(error.message, line);
    }
  }

  /** Takes the raw bytes of a frame, and returns those behind them. */
  #raw(bytes: Buffer, waiting: { frame: Frame; rawLength: number }): Buffer {
    const missing = waiting.rawLength - this.#length;
    if (bytes.length < missing) {
      this.#keep(bytes);
      return bytes.subarray(bytes.length);
    }
    this.#waiting = undefined;
    this.#take({ ...waiting.frame, raw: this.#flush(bytes.subarray(0, missing)) });
    return bytes.subarray(missing);
  }

  #keep(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (length > this.#buffer.length) {
      const bigger = Buffer.allocUnsafe(Math.max(length, Math.min(2 * length, MAX_FRAME)));
      this.#buffer.copy(bigger, 0, 0, this.#length);
      this.#buffer = bigger;
    }
    piece.copy(this.#buffer, this.#length);
    this.#length = length;
  }

  /** What was kept and the piece that completes it. */
  #flush(last: Buffer): Buffer {
    if (this.#length === 0) return last;
    this.#keep(last);
    const all = this.#buffer.subarray(0, this.#length);
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
    return all;
  }

  #error(reason: string, line: Buffer): FrameError {
    if (this.#options.quote !== true || line.length === 0) return new FrameError(reason);
    const head = line.subarray(0, QUOTED_HEAD).toString("utf8");
    return new FrameError(`${reason}: ${JSON.stringify(head)}`);
  }
}
