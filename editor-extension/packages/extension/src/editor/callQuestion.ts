import * as vscode from "vscode";
import { clip, excerpt, inQuestion, inReason, keepSpaces, unseenPart } from "../model/question.js";
import { message } from "../model/shown.js";

const scheme = "caisson-question";

/** The language of such documents: package.json lets none of their lines leave the screen. */
const language = "caisson-question";

/** How many of the documents are kept, should the editor ask for one again. */
const kept = 16;

/** First, as the first button has the focus: whoever is typing when the question comes allows nothing. */
const look: vscode.MessageItem = { title: "Show in Editor" };

/** A question whether a call may be made. */
export interface CallQuestion {
  /** One sentence. */
  question: string;
  /** Why it is asked, as sentences; "" where nothing is to be said. */
  reason: string;
  /** What would run, with nothing in it that cannot be seen. */
  text: string;
  /** What the call is called in the title of an editor. */
  name: string;
}

/**
 * Asks about calls with exactly what would run: in a question that fits a low window or,
 * where that is too little or somebody wants it, in an editor with the question beside it.
 */
export class CallQuestions implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly shown = new Map<string, string>();
  private count = 0;
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(
    scheme,
    this,
  );

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.shown.get(uri.toString()) ?? "";
  }

  dispose(): void {
    this.registration.dispose();
  }

  /** Gives the answer that was chosen; undefined when the question was closed. */
  async ask<T extends vscode.MessageItem>(
    { question, reason, text, name }: CallQuestion,
    ...answers: T[]
  ): Promise<T | undefined> {
    const part = excerpt(text, inQuestion);
    const unseen = unseenPart(text);
    const why = clip(reason, inReason);
    const more = "It is too long for this question: look at it in the editor.";
    const detail = [
      why,
      keepSpaces(part.text),
      // One of the two: there is no room for more.
      unseen !== "" ? unseen : part.whole ? "" : more,
    ].filter((paragraph) => paragraph !== "");
    const options = { modal: true, detail: detail.join("\n\n") };
    const items: (T | vscode.MessageItem)[] = [look, ...answers];
    const answer = await vscode.window.showWarningMessage(question, options, ...items);
    if (answer !== look) {
      return answers.find((item) => item === answer);
    }
    await this.show(name, why === reason ? text : `Why it is asked: ${reason}\n\n${text}`);
    // Beside the text, and not over it; only the message of an error stays until it is
    // answered. Closing it is no answer as well.
    return vscode.window.showErrorMessage(message(`${question} ${unseen}`.trim()), ...answers);
  }

  /** Opens the whole of what would run as a document. */
  private async show(name: string, text: string): Promise<void> {
    const uri = vscode.Uri.from({
      scheme,
      path: `/What ${name} would do`,
      query: String(++this.count),
    });
    this.shown.set(uri.toString(), text);
    const [oldest] = this.shown.keys();
    if (this.shown.size > kept && oldest !== undefined) {
      this.shown.delete(oldest);
    }
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, language);
    await vscode.window.showTextDocument(document, { preview: true });
  }
}
