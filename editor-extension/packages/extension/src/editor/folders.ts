import type { Session } from "@caisson/protocol";
import * as vscode from "vscode";
import { soon } from "../model/patience.js";
import { ServiceError } from "../service/errors.js";

/**
 * How long a window of a workspace file may take to know its folders, in ms: it has none
 * until the file was read where the workspace is.
 */
const foldersBudget = 30_000;

/**
 * The folder that a command or the status bar is about: that of the active editor,
 * else the first of the window; undefined in a window without folders.
 */
export function currentFolder(): vscode.WorkspaceFolder | undefined {
  const active = vscode.window.activeTextEditor?.document.uri;
  const of = active === undefined ? undefined : vscode.workspace.getWorkspaceFolder(active);
  return of ?? vscode.workspace.workspaceFolders?.[0];
}

/** The current folder for a call, which waits for it where folders are still to come. */
export async function folderOfCall(): Promise<vscode.WorkspaceFolder> {
  const folder =
    vscode.workspace.workspaceFile === undefined
      ? currentFolder()
      : await soon(currentFolder, vscode.workspace.onDidChangeWorkspaceFolders, foldersBudget);
  if (folder === undefined) {
    throw new ServiceError("The window has no folder that a session could belong to.", {
      hint: "Open a folder first.",
    });
  }
  return folder;
}

/** The folders of the window, as the service knows them. */
export function openFolders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).map(keyOf);
}

/** The folder as the service knows it. */
export function keyOf(folder: vscode.WorkspaceFolder): string {
  return folder.uri.toString();
}

/** The window's folder that a session belongs to. The service writes a uri in its own way. */
export function folderOf({ workspace }: Session): vscode.WorkspaceFolder | undefined {
  const uri = workspace === null ? undefined : vscode.Uri.parse(workspace).toString();
  return vscode.workspace.workspaceFolders?.find((folder) => keyOf(folder) === uri);
}

/** Asks for a folder where the window has several. */
export async function pickFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length <= 1) {
    return folders[0];
  }
  return vscode.window.showWorkspaceFolderPick({ placeHolder: "The folder of the session" });
}
