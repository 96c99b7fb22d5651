import * as vscode from "vscode";

/**
 * The folder that a command or the status bar is about: that of the active editor,
 * else the first of the window; undefined in a window without folders.
 */
export function currentFolder(): vscode.WorkspaceFolder | undefined {
  const active = vscode.window.activeTextEditor?.document.uri;
  const of = active === undefined ? undefined : vscode.workspace.getWorkspaceFolder(active);
  return of ?? vscode.workspace.workspaceFolders?.[0];
}

/** The folder as the service knows it. */
export function keyOf(folder: vscode.WorkspaceFolder): string {
  return folder.uri.toString();
}

/** Asks for a folder where the window has several. */
export async function pickFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length <= 1) {
    return folders[0];
  }
  return vscode.window.showWorkspaceFolderPick({ placeHolder: "The folder of the session" });
}
