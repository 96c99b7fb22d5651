import type { Artifact } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import type { Artifacts } from "../model/artifacts.js";
import { dump } from "../model/hex.js";
import { fromPath, inPath, name } from "../model/shown.js";
import { maxWhole, tooLargeToCompare, tooLargeToShow } from "../model/sizes.js";
import { ServiceError } from "../service/errors.js";

/**
 * The scheme of artifacts as files; a publication's uri is its file's, and so is the one under
 * which it is shown.
 */
export const artifactScheme = "caisson-artifact";

/** The scheme of artifacts as hexadecimal text. */
export const hexScheme = "caisson-hex";

/** The scheme of the beginnings of artifacts that are long texts. */
export const beginningScheme = "caisson-beginning";

/** How much is shown of a larger one, or of a binary artifact, in bytes. */
const beginning = 1 << 20;

/** What publishes artifacts as read-only files. */
export class ArtifactFiles implements vscode.FileSystemProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changed.event;

  constructor(private readonly caisson: Caisson) {}

  dispose(): void {
    this.changed.dispose();
  }

  watch(): vscode.Disposable {
    // What is published never changes.
    return new vscode.Disposable(() => undefined);
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    const artifact = await this.find(uri);
    const time = Date.parse(artifact.createdAt);
    return { type: vscode.FileType.File, size: artifact.size, ctime: time, mtime: time };
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    const artifact = await this.find(uri);
    // An editor that asks by itself, as one of the last window does, gets no more either.
    const problem = tooLargeToShow(artifact.name, artifact.size, "save the artifact to see it");
    if (problem !== "") {
      throw vscode.FileSystemError.Unavailable(problem);
    }
    return this.caisson.artifacts.read(artifact);
  }

  /** The publication of the uri; an editor of the last window may ask before the list came. */
  async find(uri: vscode.Uri): Promise<Artifact> {
    const known = this.lookUp(uri);
    if (known !== undefined) {
      return known;
    }
    await this.caisson.service.ensure();
    await this.caisson.artifacts.load();
    const artifact = this.lookUp(uri);
    if (artifact === undefined) {
      throw vscode.FileSystemError.FileNotFound(uri);
    }
    return artifact;
  }

  /** By the path alone: what shows an image adds a query. */
  private lookUp(uri: vscode.Uri): Artifact | undefined {
    const paths = [uri.path, fromPath(uri.path)];
    return this.caisson.artifacts.list().find((a) => paths.includes(vscode.Uri.parse(a.uri).path));
  }

  readDirectory(uri: vscode.Uri): never {
    throw vscode.FileSystemError.FileNotADirectory(uri);
  }

  createDirectory(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  writeFile(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }
}

/** What shows binary artifacts as hexadecimal text, and of long texts the beginning. */
export class ArtifactDocuments implements vscode.TextDocumentContentProvider {
  constructor(
    private readonly files: ArtifactFiles,
    private readonly artifacts: Artifacts,
  ) {}

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const artifact = await this.files.find(uri);
    const content = await this.artifacts.read(artifact, beginning);
    const text =
      uri.scheme === hexScheme
        ? dump(content)
        : // A character that the end cuts in two is left out.
          new TextDecoder().decode(content, { stream: true });
    const more = artifact.size - content.length;
    return more > 0 ? `${text}\n… ${more} more bytes: save the artifact to see them\n` : text;
  }
}

/** The uri for an editor, whose title is its last part: all of the name can be seen in it. */
function shownUri(artifact: Artifact): vscode.Uri {
  const uri = vscode.Uri.parse(artifact.uri);
  return uri.with({ path: uri.path.split("/").map(inPath).join("/") });
}

/** Opens an artifact in the way that its kind is looked at. */
export async function openArtifact(caisson: Caisson, artifact: Artifact): Promise<void> {
  const uri = shownUri(artifact);
  const view = await caisson.artifacts.viewOf(artifact);
  if (artifact.size > maxWhole && (view === "text" || view === "markdown")) {
    await vscode.window.showTextDocument(uri.with({ scheme: beginningScheme }), { preview: true });
    return;
  }
  if (view === "image") {
    const problem = tooLargeToShow(artifact.name, artifact.size, "save the artifact to see it");
    if (problem !== "") {
      throw new ServiceError(problem, { kind: "artifactTooLarge" });
    }
  }
  switch (view) {
    case "markdown":
      await vscode.commands.executeCommand("markdown.showPreview", uri);
      break;
    case "hex":
      await vscode.window.showTextDocument(uri.with({ scheme: hexScheme }), { preview: true });
      break;
    case "image":
      await vscode.commands.executeCommand("vscode.open", uri);
      break;
    case "text":
      // As text whatever it is called: other editors may run what is in it.
      await vscode.commands.executeCommand("vscode.openWith", uri, "default", { preview: true });
  }
}

const beginnings = "Compare the Beginnings";

/**
 * Shows what is different between two artifacts: between texts, or the bytes of what is no
 * text. Of long ones somebody may want the beginnings compared, and no more is loaded.
 */
export async function compareArtifacts(caisson: Caisson, a: Artifact, b: Artifact): Promise<void> {
  const [older, newer] = a.createdAt <= b.createdAt ? [a, b] : [b, a];
  const views = [await caisson.artifacts.viewOf(older), await caisson.artifacts.viewOf(newer)];
  let scheme = artifactScheme;
  if (views.includes("hex")) {
    scheme = hexScheme; // which has no more than the beginnings
  } else {
    const problem = tooLargeToCompare([older, newer]);
    if (problem !== "") {
      const offered = views.includes("image") ? [] : [beginnings];
      if ((await vscode.window.showWarningMessage(problem, ...offered)) !== beginnings) {
        return;
      }
      scheme = beginningScheme;
    }
  }
  const title =
    older.name === newer.name
      ? `${name(older.name)} (versions)`
      : `${name(older.name)} ↔ ${name(newer.name)}`;
  await vscode.commands.executeCommand(
    "vscode.diff",
    shownUri(older).with({ scheme }),
    shownUri(newer).with({ scheme }),
    scheme === beginningScheme ? `${title}, the beginnings` : title,
  );
}
