import type { Process } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { idOf } from "../model/processes.js";
import { withoutIcons } from "../model/shown.js";
import { nameOf, status } from "../model/words.js";
import { keyOf, pickFolder } from "./folders.js";
import { isProcess } from "./processTree.js";
import { openingEnvironment, waitingFor } from "./progress.js";
import type { Terminals } from "./terminal.js";

/** The most of a process's output that is copied, in bytes. */
const maxCopied = 8 << 20;

const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGKILL"];

/** Starts a command in the environment of the current folder, in a terminal. */
export async function runCommand(caisson: Caisson, terminals: Terminals): Promise<void> {
  const folder = await pickFolder();
  if (folder === undefined) {
    return;
  }
  const command = await vscode.window.showInputBox({
    title: "Run in Environment",
    prompt: "A shell command; it runs in the background and keeps its output",
  });
  if (!command) {
    return;
  }
  const session = await openingEnvironment("Opening the environment", (options) =>
    caisson.sessions.forFolder(keyOf(folder), options),
  );
  const { process } = await caisson.service.request("process/start", {
    sessionId: session.id,
    command,
    tty: { cols: 80, rows: 24 },
  });
  await terminals.show(process);
}

/** Does something to a process: the one that was clicked, or one that a person picks. */
export async function withProcess(
  caisson: Caisson,
  argument: unknown,
  work: (process: Process) => Promise<void>,
  suits: (process: Process) => boolean = () => true,
): Promise<void> {
  const process = asProcess(caisson, argument) ?? (await pickProcess(caisson, suits));
  if (process !== undefined) {
    await work(process);
  }
}

async function pickProcess(
  caisson: Caisson,
  suits: (process: Process) => boolean,
): Promise<Process | undefined> {
  await caisson.sessions.ready();
  const items = caisson.sessions
    .list()
    .flatMap((session) => caisson.processes.ofSession(session.id))
    .filter(suits)
    .map((process) => ({
      label: withoutIcons(nameOf(process)),
      description: withoutIcons(`${status(process)} · ${process.environment.profile}`),
      process,
    }));
  const placeHolder = items.length === 0 ? "No process" : "Choose a process";
  return (await vscode.window.showQuickPick(items, { placeHolder }))?.process;
}

export async function stopProcess(caisson: Caisson, process: Process): Promise<void> {
  await waitingFor(`Stopping ${nameOf(process)}`, () => caisson.processes.stop(process));
}

export async function sendSignal(caisson: Caisson, process: Process): Promise<void> {
  const placeHolder = `The signal for ${nameOf(process)} and what it started`;
  const signal = await vscode.window.showQuickPick(signals, { placeHolder });
  if (signal !== undefined) {
    await caisson.processes.signal(process, signal);
  }
}

export async function copyOutput(caisson: Caisson, process: Process): Promise<void> {
  const service = await caisson.sessions.ready();
  const read = await service.request("process/read", {
    ...idOf(process),
    tailBytes: maxCopied,
    maxBytes: maxCopied,
  });
  await vscode.env.clipboard.writeText(read.data);
  const all = read.startOffset === 0 ? "" : " (its end: the whole is too long)";
  const copied = `Copied the output of ${nameOf(process)}${all}`;
  vscode.window.setStatusBarMessage(withoutIcons(copied), 4000);
}

function asProcess(caisson: Caisson, argument: unknown): Process | undefined {
  return isProcess(argument) ? (caisson.processes.get(argument.id) ?? argument) : undefined;
}
