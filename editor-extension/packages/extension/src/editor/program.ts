import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";

/** The settings that say which program the service is, and how it is started. */
const sections = ["caisson.path", "caisson.serviceArguments"];

const restart = "Restart Service";

/**
 * Follows those settings: one that did not start may do so now; one that runs is not
 * ended without a word, as agents may work with it.
 */
export function followProgram({ service }: Caisson): vscode.Disposable {
  return vscode.workspace.onDidChangeConfiguration(async (event) => {
    if (!sections.some((section) => event.affectsConfiguration(section))) {
      return;
    }
    const { is } = service.state;
    if (is === "failed" || is === "waiting") {
      // A failure is the state of the service, which the status bar shows: somebody may
      // be writing still.
      await service.restart().catch(() => undefined);
    } else if (is !== "stopped") {
      const question = "The service goes on as it was started, until it is restarted.";
      if ((await vscode.window.showInformationMessage(question, restart)) === restart) {
        await vscode.commands.executeCommand("caisson.restartService");
      }
    }
  });
}
