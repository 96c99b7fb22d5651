import * as vscode from "vscode";
import { clip, inDetail } from "../model/question.js";
import { visible } from "../model/shown.js";

/** Asks before something is done that cannot be taken back. */
export async function confirmed(question: string, detail: string, yes: string): Promise<boolean> {
  // An error may be of any length, and the question has to fit the window.
  const options = { modal: true, detail: clip(visible(detail), inDetail) };
  return (await vscode.window.showWarningMessage(question, options, yes)) === yes;
}
