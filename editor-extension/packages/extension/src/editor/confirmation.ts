import type { GuardConfirmParams, GuardConfirmResult } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { callText, placeName } from "../model/question.js";
import { Questions } from "../model/questions.js";
import { visible } from "../model/shown.js";
import { asSentence } from "../model/words.js";
import type { CallQuestions } from "./callQuestion.js";
import { folderName } from "./sessionTree.js";

const once: vscode.MessageItem = { title: "Allow Once" };
const always: vscode.MessageItem = { title: "Allow for This Session" };
/** What closing the question means, too. */
const deny: vscode.MessageItem = { title: "Deny", isCloseAffordance: true };

/**
 * Lets a person answer the service about calls that a rule wants confirmed. Whatever is not
 * an explicit yes denies.
 */
export function answerConfirmations(caisson: Caisson, asking: CallQuestions): void {
  const questions = new Questions((params, gone) => ask(caisson, asking, params, gone));
  caisson.confirm = (connection) => {
    connection.onRequest("guard/confirm", (params, token) =>
      // Whoever asked may have given up, or ended, while a question was open.
      questions.put(params, () => token.isCancellationRequested || connection.over),
    );
  };
}

async function ask(
  caisson: Caisson,
  asking: CallQuestions,
  params: GuardConfirmParams,
  gone: () => boolean,
): Promise<GuardConfirmResult> {
  const session = caisson.sessions.get(params.sessionId);
  const where =
    session === undefined ? "" : ` in ${placeName(session.profile, folderName(session))}`;
  const question = {
    question: `An agent wants to run ${params.tool}${where}.`,
    reason: asSentence(visible(params.reason)),
    text: callText(params.arguments),
    name: params.tool,
  };
  const answer = await asking.ask(question, once, always, deny);
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
