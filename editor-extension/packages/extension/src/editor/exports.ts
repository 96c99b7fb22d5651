import type { Artifact, ProcessEventParams, Session } from "@caisson/protocol";
import * as vscode from "vscode";
import type { CaissonApi } from "../api.js";
import type { Caisson } from "../caisson.js";
import { ServiceError } from "../service/errors.js";
import { folderOfCall, keyOf } from "./folders.js";

/** What other extensions get. */
export function exportedApi(caisson: Caisson): CaissonApi {
  const processes = new vscode.EventEmitter<ProcessEventParams>();
  const artifacts = new vscode.EventEmitter<Artifact>();
  caisson.extension.subscriptions.push(
    processes,
    artifacts,
    caisson.processes.onEvent((event) => processes.fire(event)),
    caisson.artifacts.onDidPublish(({ artifact }) => artifacts.fire(artifact)),
  );
  return {
    version: 1,
    onProcess: processes.event,
    onArtifact: artifacts.event,
    open: async (folder, options) => {
      const key = keyOf(aFolder(folder ?? (await folderOfCall())));
      const { profile, token } = options ?? {};
      return profile === undefined
        ? caisson.sessions.forFolder(key, { token })
        : caisson.sessions.openNew(key, { profile, token });
    },
    call: async (session, name, input, options) => {
      const { token, ...others } = options ?? {};
      await caisson.sessions.ready();
      return caisson.service.request(
        "tool/call",
        { ...others, sessionId: idOf(session), name, arguments: input },
        { token },
      );
    },
    start: async (session, command, options) => {
      const params = { ...options, sessionId: idOf(session), command };
      await caisson.sessions.ready();
      return (await caisson.service.request("process/start", params)).process;
    },
  };
}

/** What an extension, perhaps one without types, gives as a folder. */
function aFolder(folder: vscode.WorkspaceFolder): vscode.WorkspaceFolder {
  if (!(folder?.uri instanceof vscode.Uri)) {
    throw new ServiceError("That is no folder of the window.", {
      hint: "Give one of vscode.workspace.workspaceFolders, or none.",
    });
  }
  return folder;
}

/** The id of what an extension, perhaps one without types, gives as a session. */
function idOf(session: Session | string): string {
  const id = typeof session === "string" ? session : session?.id;
  if (typeof id !== "string") {
    throw new ServiceError("A session, or its id, is missing.", {
      hint: "Give what open resolved to.",
    });
  }
  return id;
}
