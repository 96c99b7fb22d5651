import type * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { breakable, message, visible } from "../model/shown.js";
import { asSentence } from "../model/words.js";
import { ServiceError } from "../service/errors.js";
import { report } from "./report.js";

const hint = "Until the file is corrected no new session opens; those that exist go on.";

/**
 * Tells at once that the configuration cannot be used any more: in a message when it
 * became so, and in the view of sessions as long as it is.
 */
export function tellConfiguration(
  { configuration }: Caisson,
  view: vscode.TreeView<unknown>,
): vscode.Disposable {
  return configuration.onDidChange((before) => {
    const { problem } = configuration;
    // Short, as the list stands below it: the file is known.
    const where = visible(problem).replace(/^\S*[\\/](?=[^\\/\s]+:)/, "");
    const lasting = asSentence(`No new session opens: ${where}`);
    view.message = problem === "" ? "" : message(breakable(lasting));
    // Whoever writes the file may save it time and again until it is right.
    if (problem !== "" && before === "") {
      void report(new ServiceError(problem, { kind: "configInvalid", hint }));
    }
  });
}
