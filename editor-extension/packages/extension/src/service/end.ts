import type { Exit } from "./child.js";

/** How a service ended, and its last words. */
export interface End extends Exit {
  errors: string;
}

/** How much of a service's stderr is kept for the error of an early end, in characters. */
const keptErrors = 8192;

/** How a Go program begins to say what it dies of. All that follows is its stacks. */
const dying = /^(?:panic|fatal error|SIG[A-Z]+): .*/m;

/** What is kept of stderr with its next piece: its end or, of one that dies, from the reason on. */
export function kept(errors: string, piece: string): string {
  const all = errors + piece;
  const reason = all.search(dying);
  return reason < 0 ? all.slice(-keptErrors) : all.slice(reason, reason + keptErrors);
}

/** The end of a sentence about a service that is gone. */
export function lastWords(end: End): string {
  if (end.error !== undefined) {
    return `: ${end.error.message}`;
  }
  const how = end.signal !== null ? ` (${end.signal})` : end.code ? ` (exit code ${end.code})` : "";
  const said = dying.exec(end.errors)?.[0] ?? end.errors.trim().split("\n").at(-1) ?? "";
  return said === "" ? `${how}.` : `${how}: ${said}`;
}
