import type { Session } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { age, stateOf } from "../model/words.js";

/** The view of sessions: those of this window's folders, then the others. */
export class SessionTree implements vscode.TreeDataProvider<Session> {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly caisson: Caisson) {
    caisson.extension.subscriptions.push(
      this.changed,
      caisson.sessions.onDidChange(() => this.changed.fire()),
    );
  }

  refresh(): void {
    this.changed.fire();
  }

  getChildren(parent?: Session): Session[] {
    if (parent !== undefined) {
      return [];
    }
    const sessions = this.caisson.sessions;
    const list = sessions.list();
    const here = list.filter((s) => sessions.isUsed(s.id));
    return [...here, ...list.filter((s) => !sessions.isUsed(s.id))];
  }

  getTreeItem(session: Session): vscode.TreeItem {
    const here = this.caisson.sessions.isUsed(session.id);
    const item = new vscode.TreeItem(folderName(session));
    item.id = session.id;
    item.description = [
      session.profile,
      stateOf(session),
      age(session.createdAt, Date.now()),
      here ? "here" : "",
    ]
      .filter((word) => word !== "")
      .join(" · ");
    item.iconPath = new vscode.ThemeIcon(iconOf(session), colorOf(session));
    item.contextValue = `session.${session.state === "closed" ? "closed" : "open"}${here ? ".here" : ""}`;
    item.tooltip = tooltip(session);
    item.accessibilityInformation = {
      label: `Session of ${folderName(session)}, ${item.description}`,
    };
    return item;
  }
}

/** A session by the name of its folder, or its id where it has none. */
export function folderName(session: Session): string {
  if (session.workspace === null) {
    return session.id;
  }
  const path = vscode.Uri.parse(session.workspace).path;
  return path.split("/").at(-1) || path;
}

function tooltip(session: Session): string {
  return [
    `${session.profile} (${session.backend}), ${stateOf(session)}`,
    session.error === undefined ? "" : `${session.error.message} ${session.error.hint ?? ""}`,
    session.workspace === null ? "" : vscode.Uri.parse(session.workspace).fsPath,
    session.root === "" ? "" : `Root: ${session.root}`,
    session.shared ? "Its environment is shared with other sessions." : "",
    session.persistent ? "Its files are kept when it is closed." : "",
    `Id: ${session.id}`,
  ]
    .filter((line) => line !== "")
    .join("\n");
}

function iconOf(session: Session): string {
  switch (session.state) {
    case "ready":
      return "vm-active";
    case "connecting":
      return "sync";
    case "failed":
      return "warning";
    case "closed":
      return "circle-slash";
    case "disconnected":
      return "debug-disconnect";
    default:
      return "vm";
  }
}

function colorOf(session: Session): vscode.ThemeColor | undefined {
  switch (session.state) {
    case "ready":
      return new vscode.ThemeColor("charts.green");
    case "failed":
      return new vscode.ThemeColor("charts.red");
    default:
      return undefined;
  }
}
