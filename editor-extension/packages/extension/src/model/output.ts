import type { Process, ProcessOutputParams } from "@caisson/protocol";
import type { Connection } from "../service/connection.js";
import type { Disposable } from "../service/emitter.js";
import { ServiceError, serviceError } from "../service/errors.js";
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

/** The output of processes. The service has one subscription to each, and so has this side. */
export class Outputs {
  /** The subscriptions that are about to end, by process. */
  private readonly ending = new Map<string, Promise<void>>();

  /**
   * Follows a process's output from the first byte that is kept, in order and without
   * a hole: where the service left a gap, because this side was slow, it is read from
   * what is kept. Whoever followed it before must have ended that.
   */
  follow(connection: Connection, process: Process, follower: Follower): Following {
    return new Following(connection, process, follower, this.ending);
  }
}

/** One look at a process's output, until it is over. */
export class Following implements Disposable {
  private listening: Disposable | undefined;
  /** The subscription, as far as it was asked for. */
  private subscribed: Promise<unknown> | undefined;
  /** Pieces are handed on one after the other: a gap is filled before what follows it. */
  private queue: Promise<void>;
  private position = 0;
  private over = false;

  constructor(
    private readonly connection: Connection,
    private readonly process: Process,
    private readonly follower: Follower,
    private readonly ending: Map<string, Promise<void>>,
  ) {
    this.queue = this.begin().catch((thrown) => this.fail(thrown));
  }

  /** Whether more may come by that connection. */
  goesOn(connection: Connection): boolean {
    return !this.over && this.connection === connection;
  }

  dispose(): void {
    if (!this.over) {
      this.finish();
      this.unsubscribe();
    }
  }

  private async begin(): Promise<void> {
    // What was asked for before may end this one, or send pieces that are not its own.
    await this.ending.get(this.process.id);
    if (this.over) {
      return;
    }
    // Listened to before it is asked for: the first piece may follow the answer at once.
    const early: ProcessOutputParams[] = [];
    let take = (piece: ProcessOutputParams): void => void early.push(piece);
    this.listening = this.connection.onNotification("process/output", (piece) => {
      if (piece.processId === this.process.id) {
        take(piece);
      }
    });
    const params = { ...idOf(this.process), fromOffset: 0 };
    const subscribed = this.connection.request("process/subscribe", params);
    this.subscribed = subscribed;
    const { offset } = await subscribed;
    if (this.over) {
      return;
    }
    this.skipTo(offset);
    take = (piece) => {
      this.queue = this.queue.then(() => this.take(piece)).catch((e) => this.fail(e));
    };
    for (const piece of early) {
      take(piece);
    }
  }

  /** Ends the subscription, behind the answer to the request for it: the two may overtake one another. */
  private unsubscribe(): void {
    const { id } = this.process;
    if (this.subscribed === undefined) {
      return; // nor was it asked for
    }
    const ended = this.subscribed
      .then(() => this.connection.request("process/unsubscribe", idOf(this.process)))
      // A service that is gone has no subscription either.
      .catch(() => undefined)
      .then(() => {
        if (this.ending.get(id) === ended) {
          this.ending.delete(id);
        }
      });
    this.ending.set(id, ended);
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
      throw new ServiceError(message, data);
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
      // It may have been a read of this side that failed, and not the subscription.
      this.unsubscribe();
      this.follower.failed(serviceError(thrown));
    }
  }

  private finish(): void {
    this.over = true;
    this.listening?.dispose();
  }
}
