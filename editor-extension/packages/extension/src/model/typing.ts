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
 * How long an interrupt waits for the write before it to arrive or to be given up, in ms:
 * what came behind the interrupt would be left for a shell to run.
 */
const onItsWay = 200;

/** The keys by which a terminal interrupts, and how it shows them. */
const interrupts: ReadonlyMap<string, string> = new Map([
  ["\x03", "^C"],
  ["\x1c", "^\\"],
  ["\x1a", "^Z"],
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
  /**
   * Sends a signal, or what the terminal makes of a key such as ^C. Where it makes none of
   * it the error is of kind unsupported, and nothing is sent or dropped.
   */
  signal(name: string): Promise<unknown>;
  /** Says something that is not the process's. */
  note(text: string): void;
}

/** A write that was begun, when, and whether it was given up here. */
interface Begun extends Writing {
  at: number;
  givenUp: boolean;
}

/** A key that interrupts and has to wait for what was typed before it. */
interface Interrupt {
  key: string;
  /** How much waits up to it and with it, in characters. */
  left: number;
  /** Whether it has waited long enough. */
  due: boolean;
  timer?: NodeJS.Timeout;
  /** How the write failed that was under way meanwhile, as it does when it is overtaken. */
  failure?: unknown;
}

/**
 * What is typed for a process, in order: the next write begins when the one before is
 * done. A process that does not read holds up what is typed for it, but no interrupt,
 * which drops what was typed before it, as a terminal does, and nothing that comes then. A
 * program that takes the key as any other one gets it in its place.
 */
export class Typing {
  private waiting = "";
  /** The end of the input was asked for, behind what waits. */
  private ending = false;
  private under: Begun | undefined;
  /** An interrupt that is on its way as a key. */
  private hurried: Interrupt | undefined;
  /** An interrupt as a key that is being sent ahead of what waits. */
  private overtaking: Interrupt | undefined;
  /** How many signals are being sent: no write begins meanwhile, which would come before them. */
  private sending = 0;
  private full = false;
  /** How long the last write took, in ms. */
  private took = 0;
  private over = false;

  constructor(private readonly keyboard: Keyboard) {}

  /** Takes keys, or a paste, for a process that has a terminal. */
  keys(text: string): void {
    const key = interrupts.get(text);
    if (key !== undefined && this.busy && !this.over) {
      this.hurry(text, key);
    } else {
      this.text(text);
    }
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
    const dropped = this.busy;
    const { under } = this;
    this.drop();
    void this.holding(async () => {
      await settled(under, onItsWay);
      await this.keyboard.signal(signal);
    });
    if (dropped) {
      this.noteDropped();
    }
  }

  /** Nobody types any more. */
  dispose(): void {
    this.over = true;
    this.drop();
  }

  private get busy(): boolean {
    return this.under !== undefined || this.waiting !== "" || this.sending > 0;
  }

  /** Lets the key go its way for a moment; a second one is not kept waiting. */
  private hurry(text: string, key: string): void {
    this.waiting += text;
    const hurried: Interrupt = { key, left: this.waiting.length, due: this.hurried !== undefined };
    clearTimeout(this.hurried?.timer);
    this.hurried = hurried;
    if (!hurried.due) {
      const wait = Math.min(mostPatience, Math.max(patience, writes * this.took));
      hurried.timer = setTimeout(() => this.overtake(hurried), wait);
      return;
    }
    this.overtake(hurried);
  }

  /** Sends the key ahead of what was typed before it, behind another one that is being sent. */
  private overtake(interrupt: Interrupt): void {
    interrupt.due = true;
    clearTimeout(interrupt.timer);
    if (this.overtaking !== undefined) {
      return;
    }
    this.hurried = undefined;
    this.overtaking = interrupt;
    void this.holding(async () => {
      try {
        await this.send(interrupt);
      } finally {
        if (this.overtaking === interrupt) {
          this.overtaking = undefined;
        }
        if (interrupt.failure !== undefined) {
          this.holed(interrupt.failure);
        }
        if (this.hurried?.due === true) {
          this.overtake(this.hurried);
        }
      }
    });
  }

  /** Sends the key, and drops what was typed before it and not read, and no more. */
  private async send(interrupt: Interrupt): Promise<void> {
    const { under } = this;
    await settled(under, onItsWay - (Date.now() - (under?.at ?? 0)));
    if (this.overtaking !== interrupt || this.over) {
      return; // it has arrived as a key
    }
    const cut = this.under !== undefined || interrupt.failure !== undefined;
    try {
      await this.keyboard.signal(interrupt.key);
    } catch (thrown) {
      if (serviceError(thrown).kind === "unsupported") {
        return; // a program reads the key, in its place
      }
      throw thrown;
    }
    if (cut || interrupt.left > 1) {
      this.noteDropped();
    }
    interrupt.failure = undefined;
    this.forget(interrupt.left);
    this.full = false;
    this.giveUp();
  }

  private noteDropped(): void {
    this.keyboard.note("what was typed before and not read is dropped");
  }

  /** Does what sends a signal, before any other write begins. */
  private async holding(work: () => Promise<void>): Promise<void> {
    this.sending++;
    try {
      await work();
    } catch (thrown) {
      this.failed(thrown);
    } finally {
      this.sending--;
      this.next();
    }
  }

  /** Forgets what waits, and gives up what is under way. */
  private drop(): void {
    clearTimeout(this.hurried?.timer);
    this.hurried = undefined;
    this.forget(this.waiting.length);
    this.ending = false;
    this.full = false;
    this.giveUp();
  }

  private giveUp(): void {
    if (this.under !== undefined) {
      this.under.givenUp = true;
      this.under.cancel();
    }
  }

  /** Forgets so many characters of what waits. */
  private forget(count: number): void {
    this.waiting = this.waiting.slice(count);
    for (const interrupt of [this.hurried, this.overtaking]) {
      if (interrupt !== undefined) {
        interrupt.left = Math.max(0, interrupt.left - count);
      }
    }
  }

  /** Begins the next write, when none is under way. */
  private next(): void {
    if (this.under !== undefined || this.sending > 0 || this.over) {
      return;
    }
    if (this.waiting === "") {
      if (this.ending) {
        this.ending = false;
        this.keyboard.end().catch((thrown) => this.failed(thrown));
      }
      return;
    }
    // An interrupt is the last one of its write: one that is given up takes nothing along.
    const text = this.waiting.slice(0, Math.min(endOf(this.waiting), this.hurried?.left || piece));
    this.forget(text.length);
    const writing: Begun = { ...this.keyboard.write(text), at: Date.now(), givenUp: false };
    this.under = writing;
    writing.done
      .then(() => {
        this.took = Date.now() - writing.at;
        this.arrived();
      })
      .catch((thrown) => {
        if (this.overtaking !== undefined) {
          this.overtaking.failure = thrown; // which is to be expected
        } else if (!writing.givenUp) {
          this.holed(thrown);
        }
      })
      .then(() => {
        this.under = undefined;
        this.next();
      });
  }

  /** Drops what follows a hole, which is not what was typed; but nothing behind an interrupt. */
  private holed(thrown: unknown): void {
    if (!this.failed(thrown)) {
      return;
    }
    const count = this.hurried?.left ?? this.waiting.length;
    if (count > 0) {
      this.keyboard.note("what was typed after it is dropped");
      this.forget(count);
    }
    if (this.hurried !== undefined) {
      this.overtake(this.hurried);
    }
  }

  /** Ends the hurry of an interrupt that has arrived as a key, with a write that is done. */
  private arrived(): void {
    if (this.hurried !== undefined && this.hurried.left <= 0) {
      clearTimeout(this.hurried.timer);
      this.hurried = undefined;
    }
    if (this.overtaking !== undefined && this.overtaking.left <= 0) {
      this.overtaking = undefined;
    }
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

/** Waits until the write is over, however it ends, and so long at most, in ms. */
async function settled(writing: Writing | undefined, atMost: number): Promise<void> {
  if (writing === undefined || atMost <= 0) {
    return;
  }
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, atMost);
  });
  await Promise.race([writing.done.catch(() => undefined), late]);
  clearTimeout(timer);
}
