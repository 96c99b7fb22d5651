import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { isolation, notIsolated, stateOf } from "../model/words.js";
import type { ServiceState } from "../service/service.js";
import { currentFolder, keyOf } from "./folders.js";
import { sentence } from "./report.js";

/** The status bar item: in which environment this window's agents work. */
export class StatusBar implements vscode.Disposable {
  private readonly item: vscode.StatusBarItem;
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly caisson: Caisson) {
    this.item = vscode.window.createStatusBarItem(
      "caisson.environment",
      vscode.StatusBarAlignment.Left,
      10,
    );
    this.item.name = "Caisson Environment";
    this.item.command = "caisson.chooseEnvironment";
    const show = () => this.show();
    this.disposables = [
      this.item,
      caisson.service.onDidChange(show),
      caisson.sessions.onDidChange(show),
      vscode.window.onDidChangeActiveTextEditor(show),
      vscode.workspace.onDidChangeWorkspaceFolders(show),
      vscode.workspace.onDidGrantWorkspaceTrust(show),
    ];
    this.show();
    this.item.show();
  }

  private show(): void {
    const state = this.caisson.service.state;
    this.item.backgroundColor = undefined;
    if (!vscode.workspace.isTrusted) {
      this.set("$(shield) Caisson", "off in an untrusted workspace", [
        "Caisson starts nothing in a workspace that is not trusted.",
      ]);
      return;
    }
    if (state.is === "failed" || state.is === "waiting" || state.is === "silent") {
      this.item.backgroundColor = new vscode.ThemeColor("statusBarItem.errorBackground");
      const then =
        state.is === "waiting"
          ? `It is started again in ${Math.ceil(state.retryInMs / 1000)} s.`
          : (state.error.hint ?? "");
      const what = state.is === "silent" ? "does not answer" : "does not run";
      this.set("$(error) Caisson", `the service ${what}`, [state.error.message, then]);
      return;
    }
    const folder = currentFolder();
    const session =
      folder === undefined ? undefined : this.caisson.sessions.ofFolder(keyOf(folder));
    const known =
      session ??
      (folder === undefined ? undefined : this.caisson.sessions.rememberedOf(keyOf(folder)));
    if (known === undefined) {
      this.set("$(vm-outline) Caisson", "no environment yet", [
        "Agents of this window have no environment yet. One is made at their first call.",
        "Click to choose another one than the default.",
      ]);
      return;
    }
    const word = session === undefined ? "not connected" : stateOf(session, state.is);
    const elsewhere = session?.heldBy !== undefined;
    if (session?.state === "failed" || elsewhere) {
      this.item.backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
    }
    const shown = elsewhere && state.is === "running" ? "$(lock)" : icon(session?.state, state.is);
    this.set(`${shown} ${known.profile}`, word, [
      `Environment: ${known.profile} (${known.backend}), ${word}`,
      elsewhere ? "Another window or program has its session open." : "",
      session?.error === undefined ? "" : sentence(session.error),
      session?.root ? `Its files: ${session.root}` : "",
      isolation(known),
      notIsolated,
      "Click for another environment.",
    ]);
  }

  private set(text: string, state: string, lines: string[]): void {
    this.item.text = text;
    this.item.tooltip = lines.filter((line) => line !== "").join("\n\n");
    const label = text.replace(/\$\([^)]*\) /, "");
    this.item.accessibilityInformation = { label: `Caisson environment ${label}, ${state}` };
  }

  dispose(): void {
    for (const d of this.disposables) {
      d.dispose();
    }
  }
}

function icon(state: string | undefined, service: ServiceState["is"]): string {
  if (service === "starting") {
    return "$(sync~spin)";
  }
  switch (service === "running" || state === undefined ? state : "disconnected") {
    case "ready":
      return "$(vm-active)";
    case "connecting":
      return "$(sync~spin)";
    case "failed":
      return "$(warning)";
    case "disconnected":
      return "$(debug-disconnect)";
    default:
      return "$(vm)";
  }
}
