import type { Kind } from "@caisson/protocol";
import * as vscode from "vscode";
import { Untrusted } from "../caisson.js";
import { message as plain, visible } from "../model/shown.js";
import { asSentence } from "../model/words.js";
import { type ServiceError, serviceError } from "../service/errors.js";
import { SettingNeeded } from "../service/locate.js";

/** What a person can do about an error: a button and the command behind it. */
interface Action {
  title: string;
  command: string;
  arguments?: unknown[];
}

const showLog: Action = { title: "Show Log", command: "caisson.showLog" };
const doctor: Action = { title: "Show Doctor Report", command: "caisson.showDoctorReport" };
const configuration: Action = {
  title: "Open Configuration",
  command: "caisson.openConfiguration",
};
const setting: Action = {
  title: "Open Settings",
  command: "workbench.action.openSettings",
  arguments: ["@ext:caisson-dev.caisson"],
};
const restart: Action = { title: "Restart Service", command: "caisson.restartService" };
const another: Action = {
  title: "Choose Environment…",
  command: "caisson.chooseEnvironment",
};

function actionsFor(kind: Kind | undefined): Action[] {
  switch (kind) {
    case "configInvalid":
    case "profileNotFound":
      return [configuration];
    case "environmentLost":
    case "sessionNotFound":
    case "sessionBusy":
      return [another];
    case "protocolMismatch":
      return [setting, showLog];
    case "backendUnavailable":
      return [another, doctor];
    case "internal":
    case undefined:
      return [showLog, doctor];
    default:
      return [];
  }
}

/** Shows an error with what to do about it. What somebody cancelled is none. */
export async function report(thrown: unknown): Promise<void> {
  if (thrown instanceof Untrusted) {
    await offer(vscode.window.showWarningMessage, thrown.message, [
      { title: "Manage Workspace Trust", command: "workbench.trust.manage" },
    ]);
    return;
  }
  const error = serviceError(thrown);
  if (error.cancelled || thrown instanceof vscode.CancellationError) {
    return;
  }
  const actions = error instanceof SettingNeeded ? [setting, doctor] : actionsFor(error.kind);
  await offer(vscode.window.showErrorMessage, sentence(error), actions);
}

/** Tells that nothing comes of the service, or of a new one, before somebody restarts it. */
export async function reportGivenUp(error: ServiceError): Promise<void> {
  const actions = error instanceof SettingNeeded ? [setting, restart] : [restart, showLog, doctor];
  await offer(vscode.window.showErrorMessage, sentence(error), actions);
}

/** The error and its hint as one text. */
export function sentence({
  message,
  hint,
}: {
  message: string;
  hint?: string | undefined;
}): string {
  return [message, hint ?? ""].map(asSentence).join(" ").trim();
}

async function offer(
  show: (message: string, ...items: string[]) => Thenable<string | undefined>,
  message: string,
  actions: Action[],
): Promise<void> {
  const chosen = await show(plain(visible(message)), ...actions.map((a) => a.title));
  const action = actions.find((a) => a.title === chosen);
  if (action !== undefined) {
    await vscode.commands.executeCommand(action.command, ...(action.arguments ?? []));
  }
}

/** Wraps what a command does, so that its failure is shown. */
export function reporting<A extends unknown[]>(
  work: (...args: A) => Promise<void>,
): (...args: A) => Promise<void> {
  return async (...args) => {
    try {
      await work(...args);
    } catch (thrown) {
      // Not waited for: the message stays until somebody has read it.
      void report(thrown);
    }
  };
}
