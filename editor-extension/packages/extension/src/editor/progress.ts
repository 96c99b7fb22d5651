import type { Session } from "@caisson/protocol";
import * as vscode from "vscode";
import type { OpenOptions } from "../model/sessions.js";
import { message } from "../model/shown.js";

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
  return vscode.window.withProgress(shown, (progress, token) =>
    open({
      token,
      progress: (step) => {
        if (step.message !== undefined) {
          progress.report({ message: message(step.message) });
        }
      },
    }),
  );
}
