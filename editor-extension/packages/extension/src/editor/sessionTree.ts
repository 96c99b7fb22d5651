import type { Session } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { replaced } from "../model/replaced.js";
import { name } from "../model/shown.js";
import { age, stateOf } from "../model/words.js";
import type { ServiceState } from "../service/service.js";
import { sentence } from "./report.js";

/** The view of sessions: those of this window's folders, then the others. */
export class SessionTree implements vscode.TreeDataProvider<Session> {
  private readonly changed = new vscode.EventEmitter<Session[] | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  /** What the editor has for the sessions, by id: the same objects as long as they are known. */
  private readonly elements = new Map<string, Session>();
  private lines = "";

  constructor(private readonly caisson: Caisson) {
    const fire = () => this.refresh();
    caisson.extension.subscriptions.push(
      this.changed,
      caisson.sessions.onDidChange(fire),
      caisson.service.onDidChange(fire),
    );
  }

  /** Shows anew what may have changed: the lines alone where they are the same ones, as of processes. */
  refresh(): void {
    const before = this.lines;
    const elements = this.getChildren();
    this.changed.fire(this.lines === before ? elements : undefined);
  }

  getChildren(parent?: Session): Session[] {
    if (parent !== undefined) {
      return [];
    }
    const sessions = this.caisson.sessions;
    const list = sessions.list();
    const here = list.filter((s) => sessions.isUsed(s.id));
    const all = [...here, ...list.filter((s) => !sessions.isUsed(s.id))];
    this.lines = all.map(({ id }) => id).join(" ");
    const known = new Map(this.elements);
    this.elements.clear();
    return all.map((session) => {
      const element = replaced(known.get(session.id) ?? { ...session }, session);
      this.elements.set(session.id, element);
      return element;
    });
  }

  getTreeItem(session: Session): vscode.TreeItem {
    const here = this.caisson.sessions.isUsed(session.id);
    const service = this.caisson.service.state.is;
    const item = new vscode.TreeItem(folderName(session));
    item.id = session.id;
    item.description = [
      session.profile,
      stateOf(session, service),
      // What a narrow side bar or the actions of the line cover first stands last.
      here ? "here" : "",
      // There is room for the one or the other.
      service === "running" ? age(session.createdAt, Date.now()) : "",
    ]
      .filter((word) => word !== "")
      .join(" · ");
    item.iconPath = new vscode.ThemeIcon(...iconOf(session, service));
    item.contextValue = `session.${standing(session)}${here ? ".here" : ""}`;
    item.tooltip = tooltip(session, service);
    item.accessibilityInformation = {
      label: `Session of ${folderName(session)}, ${item.description}`,
    };
    return item;
  }
}

/** What can be done with a session here, for the menus. */
function standing(session: Session): "closed" | "elsewhere" | "open" {
  if (session.heldBy !== undefined) {
    return "elsewhere";
  }
  return session.state === "closed" ? "closed" : "open";
}

/** A session by the name of its folder, all of which can be seen, or its id where it has none. */
export function folderName(session: Session): string {
  if (session.workspace === null) {
    return session.id;
  }
  const path = vscode.Uri.parse(session.workspace).path;
  return name(path.split("/").at(-1) || path);
}

function tooltip(session: Session, service: ServiceState["is"]): string {
  return [
    `${session.profile} (${session.backend}), ${stateOf(session, service)}`,
    session.heldBy === undefined
      ? ""
      : "Another window or program has it open. It can be used here when that one has closed it or has ended.",
    session.error === undefined ? "" : sentence(session.error),
    session.workspace === null ? "" : vscode.Uri.parse(session.workspace).fsPath,
    session.root === "" ? "" : `Root: ${session.root}`,
    session.shared ? "Its environment is shared with other sessions." : "",
    session.persistent ? "Its files are kept when it is closed." : "",
    `Id: ${session.id}`,
  ]
    .filter((line) => line !== "")
    .join("\n");
}

/** The icon of a session's state and, where it has one, its colour. */
function iconOf(
  session: Session,
  service: ServiceState["is"],
): [icon: string, color?: vscode.ThemeColor] {
  if (service !== "running") {
    return [service === "starting" ? "sync" : "debug-disconnect"];
  }
  if (session.heldBy !== undefined) {
    return ["lock"];
  }
  switch (session.state) {
    case "ready":
      return ["vm-active", new vscode.ThemeColor("charts.green")];
    case "connecting":
      return ["sync"];
    case "failed":
      return ["warning", new vscode.ThemeColor("charts.red")];
    case "closed":
      return ["circle-slash"];
    case "disconnected":
      return ["debug-disconnect"];
    default:
      return ["vm"];
  }
}
