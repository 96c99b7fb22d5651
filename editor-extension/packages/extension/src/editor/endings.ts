import * as vscode from "vscode";
import { type Caisson, settings } from "../caisson.js";
import { nameOf, status, wentWrong } from "../model/words.js";
import type { Terminals } from "./terminal.js";

/** Tells of a process that ended while nobody looked at it. */
export function tellEndings(caisson: Caisson, terminals: Terminals): vscode.Disposable {
  const told = new Set<string>();
  return caisson.processes.onEvent(({ type, cause, process }) => {
    if ((type !== "exited" && type !== "lost") || told.has(process.id)) {
      return;
    }
    told.add(process.id);
    const wanted = settings().get<string>("notifications.processEnd", "all");
    if (
      wanted === "none" ||
      (wanted === "failures" && !wentWrong(process)) ||
      cause === "requested_stop" ||
      terminals.isSeen(process.id)
    ) {
      return;
    }
    const show = wentWrong(process)
      ? vscode.window.showWarningMessage
      : vscode.window.showInformationMessage;
    const open = "Show Output";
    void show(`${nameOf(process)}: ${status(process)}`, open).then((chosen) => {
      if (chosen === open) {
        void vscode.commands.executeCommand("caisson.process.open", process);
      }
    });
  });
}
