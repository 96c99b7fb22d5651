import type { Process, Session } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { isAlive } from "../model/processes.js";
import { excerpt, inHover } from "../model/question.js";
import { name, visible } from "../model/shown.js";
import { age, bytes, nameOf, status, wasStopped, wentWrong } from "../model/words.js";
import { folderName } from "./sessionTree.js";

/** How often ages and sizes of what runs are shown anew while the view is visible, in ms. */
const refreshInterval = 3_000;

/** The view of processes, grouped by session where there are several. */
export class ProcessTree implements vscode.TreeDataProvider<Session | Process> {
  private readonly changed = new vscode.EventEmitter<Process[] | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private timer: NodeJS.Timeout | undefined;
  private lines = "";

  constructor(private readonly caisson: Caisson) {
    const fire = () => this.show();
    caisson.extension.subscriptions.push(
      this.changed,
      caisson.processes.onDidChange(fire),
      caisson.sessions.onDidChange(fire),
      { dispose: () => clearInterval(this.timer) },
    );
  }

  /**
   * Shows anew what may have changed. While a whole tree is shown anew the editor knows
   * none of its items, and a click does nothing: only when the lines are others.
   */
  private show(): void {
    const groups = this.withProcesses().map((s) => this.caisson.processes.ofSession(s.id));
    const lines = groups.map((group) => group.map(({ id }) => id).join(" ")).join("\n");
    const same = lines === this.lines;
    this.lines = lines;
    this.changed.fire(same ? groups.flat() : undefined);
  }

  /** Keeps ages and sizes fresh as long as somebody looks. */
  setVisible(visible: boolean): void {
    clearInterval(this.timer);
    if (visible) {
      this.timer = setInterval(() => this.poll(), refreshInterval);
    }
  }

  private poll(): void {
    if (!this.caisson.processes.active) {
      return;
    }
    for (const session of this.withProcesses()) {
      void this.caisson.processes.refresh(session.id);
    }
  }

  getChildren(parent?: Session | Process): (Session | Process)[] {
    if (parent === undefined) {
      const groups = this.withProcesses();
      const only = groups[0];
      return groups.length === 1 && only !== undefined
        ? this.caisson.processes.ofSession(only.id)
        : groups;
    }
    return isProcess(parent) ? [] : this.caisson.processes.ofSession(parent.id);
  }

  getTreeItem(element: Session | Process): vscode.TreeItem {
    return isProcess(element) ? processItem(element) : groupItem(element);
  }

  private withProcesses(): Session[] {
    return this.caisson.sessions
      .list()
      .filter((s) => this.caisson.processes.ofSession(s.id).length > 0);
  }
}

/** Whether a tree's element is a process. */
export function isProcess(element: unknown): element is Process {
  return typeof element === "object" && element !== null && "totalBytes" in element;
}

function groupItem(session: Session): vscode.TreeItem {
  const item = new vscode.TreeItem(folderName(session), vscode.TreeItemCollapsibleState.Expanded);
  item.id = `group ${session.id}`;
  item.description = session.profile;
  item.contextValue = "processGroup";
  item.accessibilityInformation = {
    label: `Processes of ${folderName(session)}, ${session.profile}`,
  };
  return item;
}

function processItem(process: Process): vscode.TreeItem {
  const item = new vscode.TreeItem(nameOf(process));
  item.id = process.id;
  const until = process.endedAt === undefined ? Date.now() : Date.parse(process.endedAt);
  item.description = [
    status(process),
    age(process.startedAt, until),
    bytes(process.totalBytes),
  ].join(" · ");
  item.iconPath = iconOf(process);
  item.contextValue = isAlive(process) ? "process.alive" : "process.over";
  // Without an argument, which the editor forgets when the tree is shown anew: a click
  // at that moment would do nothing.
  item.command = { command: "caisson.process.openSelected", title: "Open Terminal" };
  item.tooltip = [
    excerpt(visible(process.command), inHover).text,
    `In ${name(process.cwd)}`,
    `Environment: ${process.environment.profile} (${process.environment.backend})`,
    process.pid === undefined ? "" : `Process id there: ${process.pid}`,
    `Started by ${process.owner.kind}`,
    visible(process.reason ?? ""),
  ]
    .filter((line) => line !== "")
    .join("\n");
  item.accessibilityInformation = { label: `Process ${nameOf(process)}, ${item.description}` };
  return item;
}

function iconOf(process: Process): vscode.ThemeIcon {
  if (isAlive(process)) {
    return new vscode.ThemeIcon("play-circle", new vscode.ThemeColor("charts.green"));
  }
  if (wasStopped(process)) {
    return new vscode.ThemeIcon("circle-slash");
  }
  return wentWrong(process)
    ? new vscode.ThemeIcon("error", new vscode.ThemeColor("charts.red"))
    : new vscode.ThemeIcon("pass");
}
