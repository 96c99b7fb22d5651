import { readFile } from "node:fs/promises";

/** Whether a process is there and no zombie. */
export async function alive(pid: number): Promise<boolean> {
  const line = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return line !== "" && !line.includes(") Z ");
}
