import { readdir, readFile } from "node:fs/promises";

/**
 * What tells a process from a later one with the same pid: when it was started,
 * and in which life of the machine. Undefined where that cannot be told: whoever
 * cannot be recognised is never signalled.
 */
export async function identity(pid: number): Promise<string | undefined> {
  try {
    const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    // The name, in parentheses, may hold anything; the start is the 22nd field.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : `${boot.trim()} ${fields[19]}`;
  } catch {
    return undefined;
  }
}

/**
 * Whether anybody in a process group runs. Who has ended and was not reaped yet does
 * not: whoever adopted it may take its time, and nothing of it can be ended any more.
 */
export async function groupRuns(pgid: number): Promise<boolean> {
  try {
    process.kill(-pgid, 0);
  } catch {
    return false;
  }
  const pids = await readdir("/proc").catch(() => undefined);
  if (pids === undefined) return true; // what could not be seen may run
  for (const pid of pids.filter((name) => /^\d+$/.test(name))) {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
    // pid (name) state ppid pgrp …
    const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (Number(group) === pgid && state !== "Z" && state !== "X") return true;
  }
  return false;
}

/** Signals a whole process group; one that is gone is no error. */
export function signalGroup(pgid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pgid, signal);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
