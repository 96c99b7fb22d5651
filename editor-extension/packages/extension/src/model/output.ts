import type { Process, ProcessOutputParams } from "@caisson/protocol";
import type { Connection } from "../service/connection.js";
import type { Disposable } from "../service/emitter.js";
import { type ServiceError, serviceError } from "../service/errors.js";
import { idOf, isAlive } from "./processes.js";

/** The most that one read of a gap asks for, in bytes. */
const page = 1 << 20;

/** Whoever follows a process's output. */
export interface Follower {
  /** The next bytes. */
  data(bytes: Uint8Array): void;
  /** So many bytes are no longer kept anywhere. */
  lost(bytes: number): void;
  /** All output is in and the process has ended; nothing follows. */
  end(process: Process): void;
  /** Following ended early; nothing follows. */
  failed(error: ServiceError): void;
}

/**
 * Follows a process's output from the first byte that is kept, in order and without
 * a hole: where the service left a gap, because this side was slow, it is read from
 * what is kept.
 */
export function follow(connection: Connection, process: Process, follower: Follower): Disposable {
  return new Following(connection, process, follower);
}

class Following implements Disposable {
  private readonly listening: Disposable;
  /** Pieces are handed on one after the other: a gap is filled before what follows it. */
  private queue: Promise<void>;
  private position = 0;
  private over = false;

  constructor(
    private readonly connection: Connection,
    private readonly process: Process,
    private readonly follower: Follower,
  ) {
    // Listened to before it is asked for: the first piece may follow the answer at once.
    const early: ProcessOutputParams[] = [];
    let take = (piece: ProcessOutputParams): void => void early.push(piece);
    this.listening = connection.onNotification("process/output", (piece) => {
      if (piece.processId === process.id) {
        take(piece);
      }
    });
    this.queue = connection
      .request("process/subscribe", { ...idOf(process), fromOffset: 0 })
      .then(({ offset }) => {
        this.skipTo(offset);
        take = (piece) => {
          this.queue = this.queue.then(() => this.take(piece)).catch((e) => this.fail(e));
        };
        for (const piece of early) {
          take(piece);
        }
      })
      .catch((thrown) => this.fail(thrown));
  }

  dispose(): void {
    if (this.over) {
      return;
    }
    this.finish();
    // A service that is gone has no subscription either.
    this.connection.request("process/unsubscribe", idOf(this.process)).catch(() => undefined);
  }

  private async take(piece: ProcessOutputParams): Promise<void> {
    if (this.over) {
      return;
    }
    this.skipTo(piece.offset);
    if (piece.data !== undefined) {
      this.give(Buffer.from(piece.data, "base64"));
    }
    if (piece.gap === true && piece.nextOffset !== undefined) {
      await this.fill(piece.nextOffset);
    }
    if (piece.error !== undefined) {
      const { message, ...data } = piece.error;
      throw Object.assign(new Error(message), { data });
    }
    if (piece.eof === true && !this.over) {
      const ended = await this.ended();
      if (!this.over) {
        this.finish();
        this.follower.end(ended);
      }
    }
  }

  /** Waits for the end of the process, which may have closed its output and go on. */
  private async ended(): Promise<Process> {
    let { process } = await this.connection.request("process/get", idOf(this.process));
    while (isAlive(process) && !this.over) {
      ({ process } = await this.connection.request("process/wait", idOf(this.process)));
    }
    return process;
  }

  /** Reads what a gap left out, as far as it is kept. */
  private async fill(end: number): Promise<void> {
    while (this.position < end && !this.over) {
      const read = await this.connection.request("process/read", {
        ...idOf(this.process),
        offset: this.position,
        maxBytes: Math.min(page, end - this.position),
        encoding: "base64",
      });
      if (this.over) {
        return;
      }
      this.skipTo(Math.min(read.startOffset, end));
      const before = this.position;
      if (read.startOffset < end) {
        this.give(Buffer.from(read.data, "base64"));
      }
      if (this.position === before && read.startOffset <= before) {
        this.skipTo(end); // nothing came, and nothing will
      }
    }
  }

  private give(bytes: Uint8Array): void {
    if (bytes.length > 0) {
      this.position += bytes.length;
      this.follower.data(bytes);
    }
  }

  private skipTo(offset: number): void {
    if (offset > this.position) {
      this.follower.lost(offset - this.position);
      this.position = offset;
    }
  }

  private fail(thrown: unknown): void {
    if (!this.over) {
      this.finish();
      this.follower.failed(serviceError(thrown));
    }
  }

  private finish(): void {
    this.over = true;
    this.listening.dispose();
  }
}
