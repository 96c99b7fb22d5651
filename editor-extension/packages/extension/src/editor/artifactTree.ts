import type { Artifact } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { name } from "../model/shown.js";
import { age, bytes } from "../model/words.js";

/** The view of what agents published, the newest first. */
export class ArtifactTree implements vscode.TreeDataProvider<Artifact> {
  private readonly changed = new vscode.EventEmitter<Artifact[] | undefined>();
  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly caisson: Caisson) {
    caisson.extension.subscriptions.push(
      this.changed,
      caisson.artifacts.onDidChange(() => this.changed.fire(undefined)),
    );
  }

  /** Shows the lines anew, and no others. */
  refresh(): void {
    this.changed.fire(this.caisson.artifacts.list());
  }

  getChildren(parent?: Artifact): Artifact[] {
    return parent === undefined ? this.caisson.artifacts.list() : [];
  }

  /** What reveal needs: all stand at the top. */
  getParent(): undefined {
    return undefined;
  }

  getTreeItem(artifact: Artifact): vscode.TreeItem {
    const item = new vscode.TreeItem(name(artifact.name));
    item.id = artifact.uri;
    item.description = `${bytes(artifact.size)} · ${age(artifact.createdAt, Date.now())}`;
    item.iconPath = new vscode.ThemeIcon(iconOf(artifact));
    item.contextValue = "artifact";
    // Without an argument, as the items of processes.
    item.command = { command: "caisson.artifact.openSelected", title: "Open" };
    item.tooltip = [
      name(artifact.source.path),
      `${artifact.mediaType}, ${artifact.size} bytes, from ${artifact.source.profile}`,
      artifact.id,
    ].join("\n");
    item.accessibilityInformation = {
      label: `Artifact ${name(artifact.name)}, ${item.description}`,
    };
    return item;
  }
}

function iconOf({ mediaType, name }: Artifact): string {
  if (mediaType.startsWith("image/")) {
    return "file-media";
  }
  if (mediaType === "text/markdown") {
    return "markdown";
  }
  if (mediaType === "text/csv" || name.endsWith(".csv")) {
    return "table";
  }
  if (mediaType.includes("json")) {
    return "json";
  }
  if (mediaType.startsWith("text/")) {
    return "file-text";
  }
  return /zip|tar|compressed/.test(mediaType) ? "file-zip" : "file-binary";
}
