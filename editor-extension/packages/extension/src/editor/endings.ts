import type { Process } from "@caisson/protocol";
import * as vscode from "vscode";
import { type Caisson, settings } from "../caisson.js";
import { message } from "../model/shown.js";
import { nameOf, status, wentWrong } from "../model/words.js";
import type { Terminals } from "./terminal.js";

/** Ends that are told together, as what ends at the same time often has one reason, in ms. */
const together = 500;

/** So many ends at once are told one by one. */
const maxSingly = 3;

/** So many processes are remembered whose end was told; a service that comes back tells again. */
const maxTold = 1_000;

/** Tells of processes that ended while nobody looked at them. */
export function tellEndings(caisson: Caisson, terminals: Terminals): vscode.Disposable {
  const told = new Set<string>();
  let ended: Process[] = [];
  let timer: NodeJS.Timeout | undefined;
  const tell = () => {
    timer = undefined;
    const now = ended;
    ended = [];
    if (now.length > maxSingly) {
      tellTogether(now);
    } else {
      now.forEach(tellOne);
    }
  };
  const listening = caisson.processes.onEvent(({ type, cause, process }) => {
    if ((type !== "exited" && type !== "lost") || told.has(process.id)) {
      return;
    }
    told.add(process.id);
    const [oldest] = told;
    if (told.size > maxTold && oldest !== undefined) {
      told.delete(oldest);
    }
    const wanted = settings().get<string>("notifications.processEnd", "all");
    if (
      wanted === "none" ||
      (wanted === "failures" && !wentWrong(process)) ||
      cause === "requested_stop" ||
      terminals.isSeen(process.id)
    ) {
      return;
    }
    ended.push(process);
    timer ??= setTimeout(tell, together);
  });
  return new vscode.Disposable(() => {
    listening.dispose();
    clearTimeout(timer);
  });
}

function tellOne(process: Process): void {
  const show = wentWrong(process)
    ? vscode.window.showWarningMessage
    : vscode.window.showInformationMessage;
  const open = "Show Output";
  void show(message(`${nameOf(process)}: ${status(process)}`), open).then((chosen) => {
    if (chosen === open) {
      void vscode.commands.executeCommand("caisson.process.open", process);
    }
  });
}

function tellTogether(processes: Process[]): void {
  const wrong = processes.filter(wentWrong).length;
  const show = wrong > 0 ? vscode.window.showWarningMessage : vscode.window.showInformationMessage;
  const open = "Show Processes";
  const how = wrong === 0 ? "" : `, ${wrong} of them badly`;
  void show(`${processes.length} processes ended${how}.`, open).then((chosen) => {
    if (chosen === open) {
      void vscode.commands.executeCommand("caisson.processes.focus");
    }
  });
}
