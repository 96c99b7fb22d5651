import { serviceError } from "../service/errors.js";
import { bytes } from "./words.js";

/** The most that one write has, in characters: so much is under way and cannot be taken back. */
const piece = 16 << 10;

/** The most that waits to be written, in characters; what is typed or pasted beyond is dropped. */
const maxWaiting = 16 << 20;

/**
 * How long a key that interrupts goes the way of every other one: so many ms, and so many
 * times what the last write took, as the process may be far away; and at most so many, as
 * it may have been one that reads little. Most programs read, and get it where it stands in
 * what was typed.
 */
const patience = 500;
const writes = 3;
const mostPatience = 3_000;

/**
 * How long a signal waits for the write before it to be given up, in ms: what came behind
 * the signal would be left for a shell to run.
 */
const givingUp = 200;

/** The keys by which a terminal interrupts, and what it sends for them. */
const interrupts: ReadonlyMap<string, string> = new Map([
  ["\x03", "SIGINT"],
  ["\x1c", "SIGQUIT"],
  ["\x1a", "SIGTSTP"],
]);

/** A write that is under way. */
export interface Writing {
  done: Promise<unknown>;
  cancel(): void;
}

/** Where what is typed goes. */
export interface Keyboard {
  write(text: string): Writing;
  /** Ends the input. */
  end(): Promise<unknown>;
  signal(name: string): Promise<unknown>;
  /** Says something that is not the process's. */
  note(text: string): void;
}

/** An interrupt as a key, which takes a signal's way when it does not arrive in time. */
interface Hurried {
  timer: NodeJS.Timeout;
  /** How much waits up to it, in characters. */
  left: number;
}

/**
 * What is typed for a process, in order: the next write begins when the one before is
 * done. A process that does not read holds up what is typed for it, but no interrupt,
 * which drops what was typed before it, as a terminal does.
 */
export class Typing {
  private waiting = "";
  /** The end of the input was asked for, behind what waits. */
  private ending = false;
  private under: Writing | undefined;
  /** An interrupt that is on its way as a key. */
  private hurried: Hurried | undefined;
  private full = false;
  /** How long the last write took, in ms. */
  private took = 0;
  private over = false;

  constructor(private readonly keyboard: Keyboard) {}

  /** Takes keys, or a paste, for a process that has a terminal. */
  keys(text: string): void {
    const signal = interrupts.get(text);
    if (signal !== undefined && this.busy) {
      this.hurry(text, signal);
      return;
    }
    this.text(text);
  }

  /** Takes text to write. */
  text(text: string): void {
    if (this.over || this.ending) {
      return;
    }
    if (this.waiting.length + text.length > maxWaiting) {
      if (!this.full) {
        this.full = true;
        this.keyboard.note(
          `the process does not read what is typed: ${bytes(maxWaiting)} wait, and no more is taken`,
        );
      }
      return;
    }
    this.waiting += text;
    this.next();
  }

  /** Ends the input behind what was typed. */
  end(): void {
    this.ending = true;
    this.next();
  }

  /** Sends the signal and drops what was typed before it and not read. */
  interrupt(signal: string): void {
    this.arrived();
    const dropped = this.busy;
    const { under } = this;
    this.drop();
    this.signal(signal, under).catch((thrown) => this.failed(thrown));
    if (dropped) {
      this.keyboard.note("what was typed before and not read is dropped");
    }
  }

  /** Nobody types any more. */
  dispose(): void {
    this.over = true;
    this.arrived();
    this.drop();
  }

  private arrived(): void {
    clearTimeout(this.hurried?.timer);
    this.hurried = undefined;
  }

  private async signal(name: string, under: Writing | undefined): Promise<void> {
    if (under !== undefined) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise((resolve) => {
        timer = setTimeout(resolve, givingUp);
      });
      await Promise.race([under.done.catch(() => undefined), late]);
      clearTimeout(timer);
    }
    await this.keyboard.signal(name);
  }

  private get busy(): boolean {
    return this.under !== undefined || this.waiting !== "";
  }

  /** Lets the key go its way for a moment; a second one is not kept waiting. */
  private hurry(key: string, signal: string): void {
    if (this.hurried !== undefined) {
      this.interrupt(signal);
      return;
    }
    this.waiting += key;
    const wait = Math.min(mostPatience, Math.max(patience, writes * this.took));
    const timer = setTimeout(() => this.interrupt(signal), wait);
    this.hurried = { timer, left: this.waiting.length };
  }

  /** Forgets what waits, and gives up what is under way. */
  private drop(): void {
    this.waiting = "";
    this.ending = false;
    this.full = false;
    this.under?.cancel();
  }

  /** Begins the next write, when none is under way. */
  private next(): void {
    if (this.under !== undefined || this.over) {
      return;
    }
    if (this.waiting === "") {
      if (this.ending) {
        this.ending = false;
        this.keyboard.end().catch((thrown) => this.failed(thrown));
      }
      return;
    }
    const text = this.waiting.slice(0, endOf(this.waiting));
    this.waiting = this.waiting.slice(text.length);
    if (this.hurried !== undefined) {
      this.hurried.left -= text.length;
    }
    const begun = Date.now();
    const writing = this.keyboard.write(text);
    this.under = writing;
    writing.done
      .then(() => {
        this.took = Date.now() - begun;
        if (this.hurried !== undefined && this.hurried.left <= 0) {
          this.arrived();
        }
      })
      .catch((thrown) => {
        // What follows a hole is not what was typed.
        if (this.failed(thrown) && this.waiting !== "") {
          this.keyboard.note("what was typed after it is dropped");
          this.waiting = "";
        }
      })
      .then(() => {
        this.under = undefined;
        this.next();
      });
  }

  /** Says what went wrong, unless it was given up here. */
  private failed(thrown: unknown): boolean {
    const error = serviceError(thrown);
    if (this.over || error.cancelled) {
      return false;
    }
    this.keyboard.note(error.message);
    return true;
  }
}

/** Where the next piece ends: not within a character. */
function endOf(text: string): number {
  const last = text.charCodeAt(piece - 1);
  return last >= 0xd800 && last <= 0xdbff ? piece - 1 : piece;
}
