import type { Content, Session } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { Decisions } from "../model/decisions.js";
import { callText, excerpt, inList, placeName } from "../model/question.js";
import { name } from "../model/shown.js";
import { serviceError } from "../service/errors.js";
import type { CallQuestions } from "./callQuestion.js";
import { folderOfCall, keyOf } from "./folders.js";
import { sentence } from "./report.js";
import { folderName } from "./sessionTree.js";

/** The names of contributed tools are the service's with this before them. */
const prefix = "caisson_";

/**
 * Registers every tool that package.json contributes: an agent in the editor calls
 * the session's tools by them, in the session of the folder that was the current one when
 * somebody was asked, and no other.
 */
export function registerLanguageModelTools(
  caisson: Caisson,
  asking: CallQuestions,
): vscode.Disposable[] {
  const contributed = contributedTools(caisson.extension);
  const decisions = new Decisions();
  return contributed.map(({ name, readOnly }) =>
    vscode.lm.registerTool(
      prefix + name,
      new SessionTool(caisson, asking, decisions, name, readOnly),
    ),
  );
}

interface ContributedTool {
  /** The service's name for it. */
  name: string;
  readOnly: boolean;
}

function contributedTools(extension: vscode.ExtensionContext): ContributedTool[] {
  const contributes = extension.extension.packageJSON.contributes as {
    languageModelTools: { name: string; tags: string[] }[];
  };
  return contributes.languageModelTools.map(({ name, tags }) => ({
    name: name.slice(prefix.length),
    readOnly: tags.includes("read-only"),
  }));
}

class SessionTool implements vscode.LanguageModelTool<Record<string, unknown>> {
  constructor(
    private readonly caisson: Caisson,
    private readonly asking: CallQuestions,
    private readonly decisions: Decisions,
    private readonly name: string,
    private readonly readOnly: boolean,
  ) {}

  async prepareInvocation(
    options: vscode.LanguageModelToolInvocationPrepareOptions<Record<string, unknown>>,
    token: vscode.CancellationToken,
  ): Promise<vscode.PreparedToolInvocation> {
    const session = await this.sessionHere(token);
    const input = inputOf(options);
    this.decisions.shown(this.name, input, session.id);
    const where = `${session.profile} (${folderName(session)})`;
    const invocationMessage = `${this.name} in ${where}: ${name(subjectOf(input))}`;
    if (this.readOnly) {
      return { invocationMessage };
    }
    const message = new vscode.MarkdownString();
    message.appendText(`In ${where}:`);
    message.appendCodeblock(
      excerpt(callText(input), inList).text,
      this.name === "bash" ? "shellscript" : "json",
    );
    return { invocationMessage, confirmationMessages: { title: `Run ${this.name}?`, message } };
  }

  async invoke(
    options: vscode.LanguageModelToolInvocationOptions<Record<string, unknown>>,
    token: vscode.CancellationToken,
  ): Promise<vscode.LanguageModelToolResult> {
    const input = inputOf(options);
    const id = this.decisions.take(this.name, input) ?? (await this.decide(input, token));
    try {
      const session = await this.caisson.sessions.open(id, { token });
      const params = { sessionId: session.id, name: this.name, arguments: input };
      const result = await this.caisson.service.request("tool/call", params, { token });
      return new vscode.LanguageModelToolResult(result.content.map(partOf));
    } catch (thrown) {
      throw readable(thrown, token);
    }
  }

  /** The session of the current folder, whose environment is made only by the call. */
  private async sessionHere(token: vscode.CancellationToken): Promise<Session> {
    try {
      const folder = keyOf(await folderOfCall());
      return await this.caisson.sessions.forFolder(folder, { connect: false, token });
    } catch (thrown) {
      throw readable(thrown, token);
    }
  }

  /** For a call whose session nobody was shown: what changes something is asked for here. */
  private async decide(
    input: Record<string, unknown>,
    token: vscode.CancellationToken,
  ): Promise<string> {
    const session = await this.sessionHere(token);
    if (!this.readOnly) {
      const run: vscode.MessageItem = { title: "Run" };
      const question = {
        question: `Run ${this.name} in ${placeName(session.profile, folderName(session))}?`,
        reason: "",
        text: callText(input),
        name: this.name,
      };
      if ((await this.asking.ask(question, run)) !== run) {
        throw new Error("Somebody denied the call.");
      }
      if (token.isCancellationRequested) {
        throw new vscode.CancellationError(); // while the question was open
      }
    }
    return session.id;
  }
}

/** The arguments of a call; one that a model made without any has none. */
function inputOf({ input }: { input: Record<string, unknown> | null | undefined }) {
  return input ?? {};
}

/** An error as a model reads it, which can act on it; nobody reads that of a cancelled call. */
function readable(thrown: unknown, token: vscode.CancellationToken): Error {
  return token.isCancellationRequested
    ? new vscode.CancellationError()
    : new Error(sentence(serviceError(thrown)));
}

function subjectOf(input: Record<string, unknown>): string {
  const main = input["command"] ?? input["path"] ?? input["pattern"];
  return typeof main === "string" ? main : JSON.stringify(input);
}

function partOf(part: Content): vscode.LanguageModelTextPart {
  if (part.type === "text") {
    return new vscode.LanguageModelTextPart(part.text ?? "");
  }
  return new vscode.LanguageModelTextPart(
    `[${part.type}${part.mimeType ? ` ${part.mimeType}` : ""}]`,
  );
}
