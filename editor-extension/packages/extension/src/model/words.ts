import type { Process, Session } from "@caisson/protocol";
import type { ServiceState } from "../service/service.js";
import { name } from "./shown.js";

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

/** A text with a capital at its beginning and a stop at its end; "" stays as it is. */
export function asSentence(text: string): string {
  if (text === "") {
    return text;
  }
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?:…]$/.test(begun) ? begun : `${begun}.`;
}

/** A number of bytes for people: three digits at most and a unit. */
export function bytes(n: number): string {
  let unit = 0;
  let value = n;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 10 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** The time between two moments for people: its largest unit. */
export function age(from: string, to: number): string {
  const seconds = Math.max(0, Math.floor((to - Date.parse(from)) / 1000));
  if (seconds < 60) {
    return `${seconds} s`;
  }
  if (seconds < 3600) {
    return `${Math.floor(seconds / 60)} min`;
  }
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** What became of a process, in a few words. */
export function status(process: Process): string {
  if (wasStopped(process)) {
    return "stopped";
  }
  switch (process.status) {
    case "exited":
      return process.signal !== undefined
        ? `ended by ${process.signal}`
        : process.exitCode === undefined || process.exitCode === 0
          ? "exited"
          : `exit code ${process.exitCode}`;
    case "failed":
      return process.reason === undefined ? "failed" : `failed: ${process.reason}`;
    default:
      return process.status;
  }
}

/** Whether a process ended because somebody stopped it. */
export function wasStopped({ status, cause }: Process): boolean {
  return status === "exited" && cause === "requested_stop";
}

/** Whether a process came to a bad end; one that somebody stopped did not. */
export function wentWrong(process: Process): boolean {
  return (
    !wasStopped(process) &&
    (process.status === "failed" ||
      process.status === "lost" ||
      (process.exitCode ?? 0) !== 0 ||
      (process.signal !== undefined && process.status === "exited"))
  );
}

/** A process by the name that people know it by, in one line that can be seen. */
export function nameOf(process: Process): string {
  return name(process.label ?? process.command);
}

/**
 * The state of a session, for people. What a service said that does not run any more
 * is not known to be so.
 */
export function stateOf(
  session: Pick<Session, "state" | "heldBy">,
  service: ServiceState["is"],
): string {
  if (service === "silent") {
    return "service not answering";
  }
  if (service !== "running") {
    return service === "starting" ? "service starting" : "service down";
  }
  if (session.heldBy !== undefined) {
    return `in use by pid ${session.heldBy}`;
  }
  switch (session.state) {
    case "bound":
      return "not started";
    case "disconnected":
      return "not connected";
    default:
      return session.state;
  }
}

/** What an environment keeps apart from this machine, one sentence. */
export function isolation(session: Pick<Session, "backend" | "profile">): string {
  switch (session.backend) {
    case "local":
      return "Commands run on this machine. They may write in the workspace and a temporary directory of their own only.";
    case "docker":
      return "Files, commands and processes of agents are in a container.";
    case "ssh":
      return "Files, commands and processes of agents are on another machine.";
    case "wasm":
      return "Tools run in a WebAssembly sandbox; there are no commands.";
    default:
      return `Files, commands and processes of agents are where the ${session.backend} environment has them.`;
  }
}

/** What stays on this machine whatever the environment is, one sentence. */
export const notIsolated =
  "Not isolated: the editor's own terminal, its Source Control panel and other extensions stay on this machine.";
