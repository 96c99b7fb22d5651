import type { Artifact } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { fileName, name, withoutIcons } from "../model/shown.js";
import { compareArtifacts } from "./artifactFiles.js";
import { currentFolder } from "./folders.js";
import { confirmed } from "./yesOrNo.js";

export async function oneArtifact(caisson: Caisson, argument: unknown): Promise<Artifact> {
  if (isArtifact(argument)) {
    return argument;
  }
  if (caisson.artifacts.list().length === 0) {
    await caisson.artifacts.load(); // perhaps nothing needed the service yet
  }
  const items = caisson.artifacts.list().map((artifact) => ({
    label: withoutIcons(name(artifact.name)),
    description: withoutIcons(name(artifact.source.path)),
    artifact,
  }));
  const placeHolder = items.length === 0 ? "No artifact" : "Choose an artifact";
  const chosen = await vscode.window.showQuickPick(items, { placeHolder });
  if (chosen === undefined) {
    throw new vscode.CancellationError();
  }
  return chosen.artifact;
}

export async function saveArtifact(caisson: Caisson, artifact: Artifact): Promise<void> {
  const folder = currentFolder()?.uri;
  const proposed = fileName(artifact.name);
  const target = await vscode.window.showSaveDialog({
    ...(folder === undefined ? {} : { defaultUri: vscode.Uri.joinPath(folder, proposed) }),
    title: `Save ${name(artifact.name)}`,
  });
  if (target === undefined) {
    return;
  }
  if (target.scheme === "file") {
    await caisson.artifacts.save(artifact, target.fsPath);
  } else {
    await vscode.workspace.fs.writeFile(target, await caisson.artifacts.read(artifact));
  }
}

export async function compare(caisson: Caisson, argument: unknown, all: unknown): Promise<void> {
  const selected = Array.isArray(all) ? all.filter(isArtifact) : [];
  const [first, second] =
    selected.length === 2 ? selected : [await oneArtifact(caisson, argument), undefined];
  if (first === undefined) {
    return;
  }
  const other = second ?? (await pickOther(caisson, first));
  if (other !== undefined) {
    await compareArtifacts(caisson, first, other);
  }
}

/** The other side of a comparison: earlier versions of the same name come first. */
async function pickOther(caisson: Caisson, first: Artifact): Promise<Artifact | undefined> {
  const others = caisson.artifacts.list().filter((a) => a.uri !== first.uri);
  const same = (a: Artifact) => Number(a.name === first.name);
  const items = others
    .sort((a, b) => same(b) - same(a))
    .map((artifact) => ({
      label: withoutIcons(name(artifact.name)),
      description: new Date(artifact.createdAt).toLocaleString(),
      artifact,
    }));
  const placeHolder = `Compare ${name(first.name)} with`;
  return (await vscode.window.showQuickPick(items, { placeHolder }))?.artifact;
}

export async function deleteArtifact(caisson: Caisson, artifact: Artifact): Promise<void> {
  const detail = "The file in the environment stays; this copy of it goes.";
  if (await confirmed(`Delete the artifact ${name(artifact.name)}?`, detail, "Delete")) {
    await caisson.artifacts.delete(artifact);
  }
}

function isArtifact(argument: unknown): argument is Artifact {
  return typeof argument === "object" && argument !== null && "mediaType" in argument;
}
