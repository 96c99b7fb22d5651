import type { Session } from "@caisson/protocol";
import * as vscode from "vscode";
import { fromPath, name } from "../model/shown.js";
import { type EnvironmentFiles, environmentUri, isFolder } from "./environmentFiles.js";

/** An entry of the view of files. */
export interface FileNode {
  uri: vscode.Uri;
  name: string;
  type: vscode.FileType;
}

/** The view of the files of the environment that the current folder's session has. */
export class FileTree implements vscode.TreeDataProvider<FileNode> {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  /** The session whose files are shown, by id. */
  private shown: string | undefined;

  constructor(
    private readonly files: EnvironmentFiles,
    private readonly session: () => Session | undefined,
    subscriptions: vscode.Disposable[],
  ) {
    subscriptions.push(this.changed);
  }

  refresh(): void {
    this.changed.fire();
  }

  /** Shows the files of another session when the current folder has become another. */
  follow(): void {
    if (this.session()?.id !== this.shown) {
      this.refresh();
    }
  }

  async getChildren(parent?: FileNode): Promise<FileNode[]> {
    const session = this.session();
    this.shown = session?.id;
    // An environment that is not there yet is not made by a look at its files.
    if (session === undefined || session.state !== "ready") {
      return [];
    }
    return this.entries(parent?.uri ?? environmentUri(session, ""));
  }

  private async entries(uri: vscode.Uri): Promise<FileNode[]> {
    const nodes = (await this.files.readDirectory(uri)).map(([part, type]) => ({
      uri: vscode.Uri.joinPath(uri, part),
      name: fromPath(part),
      type,
    }));
    return nodes.sort(
      (a, b) => Number(isFolder(b.type)) - Number(isFolder(a.type)) || a.name.localeCompare(b.name),
    );
  }

  getTreeItem(node: FileNode): vscode.TreeItem {
    const folder = isFolder(node.type);
    const item = new vscode.TreeItem(
      node.uri,
      folder ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.None,
    );
    item.label = name(node.name);
    item.contextValue = folder ? "environmentFolder" : "environmentFile";
    if (!folder) {
      item.command = { command: "vscode.open", title: "Open", arguments: [node.uri] };
    }
    return item;
  }
}
