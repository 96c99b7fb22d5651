import type { Content } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { callText, excerpt, inList } from "../model/question.js";
import { name } from "../model/shown.js";
import { ServiceError, serviceError } from "../service/errors.js";
import { currentFolder, keyOf } from "./folders.js";
import { sentence } from "./report.js";

/** The names of contributed tools are the service's with this before them. */
const prefix = "caisson_";

/**
 * Registers every tool that package.json contributes: an agent in the editor calls
 * the session's tools by them, in the environment of the current folder.
 */
export function registerLanguageModelTools(caisson: Caisson): vscode.Disposable[] {
  const contributed = contributedTools(caisson.extension);
  return contributed.map(({ name, readOnly }) =>
    vscode.lm.registerTool(prefix + name, new SessionTool(caisson, name, readOnly)),
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
    private readonly name: string,
    private readonly readOnly: boolean,
  ) {}

  prepareInvocation(
    options: vscode.LanguageModelToolInvocationPrepareOptions<Record<string, unknown>>,
  ): vscode.PreparedToolInvocation {
    const folder = currentFolder();
    const known = folder && this.caisson.sessions.rememberedOf(keyOf(folder));
    const where =
      known === undefined ? "the default environment" : `the environment ${known.profile}`;
    const invocationMessage = `${this.name} in ${where}: ${name(subjectOf(options.input))}`;
    if (this.readOnly) {
      return { invocationMessage };
    }
    const message = new vscode.MarkdownString();
    message.appendText(`In ${where}:`);
    message.appendCodeblock(
      excerpt(callText(options.input), inList).text,
      this.name === "bash" ? "shellscript" : "json",
    );
    return { invocationMessage, confirmationMessages: { title: `Run ${this.name}?`, message } };
  }

  async invoke(
    options: vscode.LanguageModelToolInvocationOptions<Record<string, unknown>>,
    token: vscode.CancellationToken,
  ): Promise<vscode.LanguageModelToolResult> {
    try {
      const folder = currentFolder();
      if (folder === undefined) {
        throw new ServiceError("The window has no folder that a session could belong to.");
      }
      const session = await this.caisson.sessions.forFolder(keyOf(folder), { token });
      const params = { sessionId: session.id, name: this.name, arguments: options.input };
      const result = await this.caisson.service.request("tool/call", params, { token });
      return new vscode.LanguageModelToolResult(result.content.map(partOf));
    } catch (thrown) {
      // The model reads it, and can act on it.
      throw new Error(sentence(serviceError(thrown)));
    }
  }
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
