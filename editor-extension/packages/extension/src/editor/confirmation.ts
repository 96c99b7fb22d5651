import type { GuardConfirmParams, GuardConfirmResult } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { asSentence } from "../model/words.js";
import { folderName } from "./sessionTree.js";

/** Of a longer argument only the beginning is shown, in characters. */
const maxShown = 2000;

const once: vscode.MessageItem = { title: "Allow Once" };
const always: vscode.MessageItem = { title: "Allow for This Session" };
/** What closing the question means, too. */
const deny: vscode.MessageItem = { title: "Deny", isCloseAffordance: true };

/**
 * Asks a person about calls that a rule wants confirmed, one at a time, with exactly
 * what would run. Whatever is not an explicit yes denies.
 */
export class Confirmations {
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly caisson: Caisson) {
    caisson.confirm = (connection) => {
      connection.onRequest("guard/confirm", (params, token) => {
        const answer = this.last.then(() => {
          // Whoever asked may have given up while another question was open.
          return token.isCancellationRequested ? { decision: "deny" as const } : this.ask(params);
        });
        this.last = answer.catch(() => undefined);
        return answer;
      });
    };
  }

  private async ask(params: GuardConfirmParams): Promise<GuardConfirmResult> {
    const session = this.caisson.sessions.get(params.sessionId);
    const where = session === undefined ? "" : ` in ${session.profile} (${folderName(session)})`;
    const detail = [asSentence(params.reason), subject(params)]
      .filter((part) => part !== "")
      .join("\n\n");
    const answer = await vscode.window.showWarningMessage(
      `An agent wants to run ${params.tool}${where}.`,
      { modal: true, detail },
      // The first has the focus: whoever is typing when the question comes denies.
      deny,
      once,
      always,
    );
    switch (answer) {
      case once:
        return { decision: "allow" };
      case always:
        return { decision: "allow", remember: "session" };
      default:
        return { decision: "deny" };
    }
  }
}

/** What would run: the command as it stands, else the arguments. */
function subject({ arguments: given }: GuardConfirmParams): string {
  const command = given["command"];
  const { command: _, ...others } = given;
  if (typeof command !== "string") {
    return shorten(JSON.stringify(given, null, 2));
  }
  return Object.keys(others).length === 0
    ? shorten(command)
    : `${shorten(command)}\n\n${shorten(JSON.stringify(others, null, 2))}`;
}

/** Says openly when something is left out: what is not seen must not be allowed unknowingly. */
function shorten(text: string): string {
  return text.length <= maxShown
    ? text
    : `${text.slice(0, maxShown)}\n… and ${text.length - maxShown} more characters that are not shown`;
}
