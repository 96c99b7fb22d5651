import type { Session } from "@caisson/protocol";
import * as vscode from "vscode";
import type { OpenOptions } from "../model/sessions.js";
import { message, withoutIcons } from "../model/shown.js";

/** Shows the steps of opening an environment, with a way to cancel it. */
export function openingEnvironment(
  title: string,
  open: (options: Pick<OpenOptions, "token" | "progress">) => Promise<Session>,
): Thenable<Session> {
  const shown = {
    location: vscode.ProgressLocation.Notification,
    title: message(title),
    cancellable: true,
  };
  return vscode.window.withProgress(shown, async (progress, token) => {
    try {
      return await open({
        token,
        progress: (step) => {
          if (step.message !== undefined) {
            progress.report({ message: message(step.message) });
          }
        },
      });
    } catch (thrown) {
      // However it ended: who cancelled it knows.
      throw token.isCancellationRequested ? new vscode.CancellationError() : thrown;
    }
  });
}

/** Says in the status bar what is done as long as it takes. */
export function waitingFor<T>(title: string, work: () => Promise<T>): Thenable<T> {
  const shown = { location: vscode.ProgressLocation.Window, title: withoutIcons(message(title)) };
  return vscode.window.withProgress(shown, work);
}
