import type { Exit } from "./child.js";

/** How a service ended, and its last words. */
export interface End extends Exit {
  errors: string;
}

/** The end of a sentence about a service that is gone. */
export function lastWords(end: End): string {
  if (end.error !== undefined) {
    return `: ${end.error.message}`;
  }
  const how = end.signal !== null ? ` (${end.signal})` : end.code ? ` (exit code ${end.code})` : "";
  const said = end.errors.trim().split("\n").at(-1) ?? "";
  return said === "" ? `${how}.` : `${how}: ${said}`;
}
