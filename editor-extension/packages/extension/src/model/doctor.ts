import type { ExecFileException } from "node:child_process";

/** How long the doctor may take, in ms: it tries every profile. */
export const doctorBudget = 90_000;

/**
 * What the doctor said; its exit code says only whether it found something. One that was
 * ended has not said all, and says so; of one that said nothing there is the reason.
 */
export function doctorReport(
  error: ExecFileException | null,
  stdout: string,
  stderr: string,
): string {
  const cut = error === null ? "" : cutOff(error);
  if (error !== null && stdout === "") {
    throw new Error(`The doctor could not be run: ${cut || stderr || error.message}`);
  }
  const said = stdout + stderr;
  return cut === "" ? said : `${said.trimEnd()}\n\nThe rest of the report is missing: ${cut}.\n`;
}

/** Why the doctor did not come to its end; "" when it did. */
function cutOff({ killed, signal, code, message }: ExecFileException): string {
  if (killed === true) {
    return `the doctor was ended after ${doctorBudget / 1000} s`;
  }
  // Not ours: too little memory, or somebody.
  if (typeof signal === "string") {
    return `the doctor was ended by ${signal}`;
  }
  return typeof code === "string" ? message : "";
}
