/** How often whoever waits looks whether something was heard, in ms. */
const interval = 5_000;

/** After so many looks in a row that found nothing the program is asked for a sign of life. */
const asking = 2;

/** After so many it is taken for one that does not answer. */
const giving = 4;

/** How long nothing was heard by then, in s. */
export const silence = (giving * interval) / 1000;

/**
 * Finds out that a program has fallen silent while somebody waits for it. A request may
 * rightly take hours, so what counts is whether anything is heard; where nothing is, the
 * program is asked something that it answers at once. Looks are counted, and not the
 * time: a machine that slept has not waited.
 */
export class Vigil {
  private waiting = 0;
  private looks = 0;
  private fallen = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    /** Asks the program for a sign of life, which is heard. */
    private readonly ask: () => void,
    /** Is told that the program has fallen silent, and that it speaks again. */
    private readonly tell: (silent: boolean) => void,
  ) {}

  /** Whether the program was asked and did not answer. */
  get silent(): boolean {
    return this.fallen;
  }

  /** Somebody waits for an answer, until what this gives is called. */
  wait(): () => void {
    if (this.waiting++ === 0) {
      this.looks = 0;
      this.timer = setInterval(() => this.look(), interval);
    }
    return () => {
      if (--this.waiting === 0) {
        this.end();
      }
    };
  }

  /** The program said something. */
  heard(): void {
    this.looks = 0;
    if (this.fallen) {
      this.fallen = false;
      this.tell(false);
    }
  }

  /** Nobody waits any more. */
  end(): void {
    clearInterval(this.timer);
  }

  private look(): void {
    this.looks++;
    if (this.looks === asking) {
      this.ask();
    } else if (this.looks === giving) {
      this.fallen = true;
      this.tell(true);
    }
  }
}
