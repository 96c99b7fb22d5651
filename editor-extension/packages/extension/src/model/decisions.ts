import { createHash } from "node:crypto";

/** How many calls wait for their answer at most; older ones were denied, or never made. */
const maxWaiting = 1_000;

/**
 * What people were shown about calls before these are made: a call runs in the session
 * that its question named, wherever the window looks by then. The editor connects the
 * question and the call by nothing but what is called.
 */
export class Decisions {
  /** The sessions that questions about a call named, by the call. */
  private readonly waiting = new Map<string, Set<string>>();

  /** A question about the call names the session. */
  shown(tool: string, input: unknown, sessionId: string): void {
    const key = keyOf(tool, input);
    const sessions = this.waiting.get(key) ?? new Set();
    this.waiting.delete(key); // it becomes the newest
    this.waiting.set(key, sessions.add(sessionId));
    const [oldest] = this.waiting.keys();
    if (this.waiting.size > maxWaiting && oldest !== undefined) {
      this.waiting.delete(oldest);
    }
  }

  /**
   * The session that was shown for the call; undefined when there was no question, or
   * several about equal calls that named different ones. It is given once.
   */
  take(tool: string, input: unknown): string | undefined {
    const key = keyOf(tool, input);
    const sessions = [...(this.waiting.get(key) ?? [])];
    this.waiting.delete(key);
    return sessions.length === 1 ? sessions[0] : undefined;
  }
}

/** A call may carry a whole file: it is not kept for the sake of being known again. */
function keyOf(tool: string, input: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify([tool, input]))
    .digest("base64");
}
