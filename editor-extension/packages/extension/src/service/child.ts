import { spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";

/** How a program ended: by its exit code, a signal, or never having begun. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** Why it could not be started. */
  error?: Error;
}

/** A program that runs, and its standard streams. */
export interface Child {
  stdin: Writable;
  stdout: Readable;
  stderr: Readable;
  /** Resolves when it is gone and its output was read to the end. */
  ended: Promise<Exit>;
  kill(): void;
}

/** Starts a program. */
export type Launch = (program: string, args: readonly string[]) => Child;

/** Starts a program as a child of this process. */
export const launch: Launch = (program, args) => {
  // On Windows a program of the console would open one, as the editor has none.
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
  // A write to a program that has gone is told by its end.
  child.stdin.on("error", () => undefined);
  return {
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    ended: new Promise((resolve) => {
      child.once("error", (error) => resolve({ code: null, signal: null, error }));
      child.once("close", (code, signal) => resolve({ code, signal }));
    }),
    kill: () => void child.kill("SIGKILL"),
  };
};
