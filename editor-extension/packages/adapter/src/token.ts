import { timingSafeEqual } from "node:crypto";
import { AdapterError } from "./errors.js";
import { MIN_TOKEN } from "./limits.js";

/**
 * The secret of a connection. The first `initialize` with one of at least 32
 * characters fixes it; every later frame must carry it.
 */
export class Token {
  #value: Buffer | undefined;

  /** Throws unless the frame's token is the fixed one, in constant time. */
  check(token: string): void {
    const fixed = this.#value;
    if (fixed === undefined) return;
    const given = Buffer.from(token, "utf8");
    // That a length differs tells nothing: every token of a host is as long.
    if (given.length !== fixed.length || !timingSafeEqual(given, fixed)) {
      throw new AdapterError("denied", "the token is missing or not the one of this session");
    }
  }

  /** Fixes the token of the first `initialize`; a shorter one counts as none. */
  fix(token: string): void {
    if (this.#value === undefined && token.length >= MIN_TOKEN)
      this.#value = Buffer.from(token, "utf8");
  }
}
