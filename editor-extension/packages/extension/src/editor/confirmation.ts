import type { GuardConfirmParams, GuardConfirmResult } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import {
  callText,
  excerpt,
  inQuestion,
  inReason,
  keepSpaces,
  unseenPart,
} from "../model/question.js";
import { message, visible } from "../model/shown.js";
import { asSentence } from "../model/words.js";
import { folderName } from "./sessionTree.js";

const scheme = "caisson-question";

/** The language of such documents: package.json lets none of their lines leave the screen. */
const language = "caisson-question";

/** First, as the first button has the focus: whoever is typing when the question comes allows nothing. */
const look: vscode.MessageItem = { title: "Show in Editor" };
const once: vscode.MessageItem = { title: "Allow Once" };
const always: vscode.MessageItem = { title: "Allow for This Session" };
/** What closing the question means, too. */
const deny: vscode.MessageItem = { title: "Deny", isCloseAffordance: true };

/**
 * Asks a person about calls that a rule wants confirmed, one at a time, with exactly
 * what would run. Whatever is not an explicit yes denies.
 */
export class Confirmations implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private last: Promise<unknown> = Promise.resolve();
  private readonly shown = new Map<string, string>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(
    scheme,
    this,
  );

  constructor(private readonly caisson: Caisson) {
    caisson.confirm = (connection) => {
      connection.onRequest("guard/confirm", (params, token) => {
        // Whoever asked may have given up, or ended, while a question was open.
        const gone = () => token.isCancellationRequested || connection.over;
        const answer = this.last.then(() =>
          gone() ? { decision: "deny" as const } : this.ask(params, gone),
        );
        this.last = answer.catch(() => undefined);
        return answer;
      });
    };
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.shown.get(uri.toString()) ?? "";
  }

  dispose(): void {
    this.registration.dispose();
  }

  private async ask(params: GuardConfirmParams, gone: () => boolean): Promise<GuardConfirmResult> {
    const session = this.caisson.sessions.get(params.sessionId);
    const where = session === undefined ? "" : ` in ${session.profile} (${folderName(session)})`;
    const question = `An agent wants to run ${params.tool}${where}.`;
    const text = callText(params.arguments);
    const part = excerpt(text, inQuestion);
    const unseen = unseenPart(text);
    const detail = [
      excerpt(asSentence(visible(params.reason)), inReason).text,
      keepSpaces(part.text),
      part.whole ? "" : "It is too long for this question: look at it in the editor.",
      unseen,
    ].filter((paragraph) => paragraph !== "");
    let answer = await vscode.window.showWarningMessage(
      question,
      { modal: true, detail: detail.join("\n\n") },
      look,
      once,
      always,
      deny,
    );
    if (answer === look) {
      await this.show(params, text);
      // Beside the text, and not over it; only the message of an error stays until it is
      // answered. Closing it denies as well.
      const again = message(`${question} ${unseen}`.trim());
      answer = await vscode.window.showErrorMessage(again, once, always, deny);
    }
    if (answer !== once && answer !== always) {
      return { decision: "deny" };
    }
    if (gone()) {
      void vscode.window.showInformationMessage(
        `The answer came too late: ${params.tool} was not run.`,
      );
    }
    return answer === once ? { decision: "allow" } : { decision: "allow", remember: "session" };
  }

  /** Opens the whole of what would run as a document. */
  private async show(params: GuardConfirmParams, text: string): Promise<void> {
    const uri = vscode.Uri.from({
      scheme,
      path: `/What ${params.tool} would do`,
      query: params.callId,
    });
    this.shown.clear();
    this.shown.set(uri.toString(), text);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, language);
    await vscode.window.showTextDocument(document, { preview: true });
  }
}
