import type { FileInfo, Session } from "@caisson/protocol";
import * as vscode from "vscode";
import { type Caisson, settings } from "../caisson.js";
import { eachOf } from "../model/eachOf.js";
import { fault } from "../model/fileErrors.js";
import { servicePath } from "../model/paths.js";
import { fromPath, inPath } from "../model/shown.js";
import { tooLargeToShow } from "../model/sizes.js";
import { serviceError } from "../service/errors.js";
import { sentence } from "./report.js";

/**
 * The scheme of the files of environments: caisson-env:/<session>/<path below its root>, as
 * inPath makes it.
 */
export const environmentScheme = "caisson-env";

/** How many bytes one read of a file asks for. */
const chunk = 8 << 20;

/** How many links are looked up at once: the service has room for others' requests then. */
const maxLookups = 8;

/** The uri of a path below a session's root. */
export function environmentUri(session: Session, path: string): vscode.Uri {
  return vscode.Uri.from({ scheme: environmentScheme, path: `/${session.id}/${path}` });
}

/** The files of environments, for people: no agent's calls, and no agent's rules. */
export class EnvironmentFiles implements vscode.FileSystemProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changed.event;

  constructor(private readonly caisson: Caisson) {}

  dispose(): void {
    this.changed.dispose();
  }

  watch(): vscode.Disposable {
    // The service tells of no changes of files; the view has a button to look again.
    return new vscode.Disposable(() => undefined);
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    const { file } = await this.ask(uri, "fs/stat", (sessionId, path) => ({ sessionId, path }));
    return statOf(file);
  }

  async readDirectory(uri: vscode.Uri): Promise<[string, vscode.FileType][]> {
    const { entries } = await this.ask(uri, "fs/readDirectory", (sessionId, path) => ({
      sessionId,
      path,
    }));
    return eachOf(entries, maxLookups, async (file): Promise<[string, vscode.FileType]> => {
      const part = inPath(file.name);
      return [part, file.type === "symlink" ? await this.typeOfLink(uri, part) : typeOf(file)];
    });
  }

  /** A link is a folder where it leads to one; one that leads nowhere is no file either. */
  private async typeOfLink(folder: vscode.Uri, name: string): Promise<vscode.FileType> {
    try {
      const { type } = await this.stat(vscode.Uri.joinPath(folder, name));
      return type | vscode.FileType.SymbolicLink;
    } catch {
      return vscode.FileType.SymbolicLink;
    }
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    this.check(uri, (await this.stat(uri)).size);
    const pieces: Buffer[] = [];
    let offset = 0;
    for (let eof = false; !eof; ) {
      const at = offset;
      this.check(uri, at);
      const piece = await this.ask(uri, "fs/readFile", (sessionId, path) => ({
        sessionId,
        path,
        offset: at,
        length: chunk,
      }));
      const data = Buffer.from(piece.data, "base64");
      pieces.push(data);
      offset += data.length;
      eof = piece.eof || data.length === 0;
    }
    return Buffer.concat(pieces);
  }

  /** A file may be of any size, and grow while it is read: no more of it than fits is. */
  private check(uri: vscode.Uri, size: number): void {
    const file = fromPath(uri.path.split("/").at(-1) ?? "");
    const problem = tooLargeToShow(file, size, "let an agent present a part of it");
    if (problem !== "") {
      throw vscode.FileSystemError.Unavailable(problem);
    }
  }

  async writeFile(uri: vscode.Uri, content: Uint8Array): Promise<void> {
    if (!editable()) {
      throw vscode.FileSystemError.NoPermissions(
        "The files of environments are read-only here: the setting caisson.environmentFiles.editable changes that.",
      );
    }
    await this.ask(uri, "fs/writeFile", (sessionId, path) => ({
      sessionId,
      path,
      data: Buffer.from(content).toString("base64"),
    }));
    this.changed.fire([{ type: vscode.FileChangeType.Changed, uri }]);
  }

  createDirectory(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  private async ask<M extends FileMethod>(
    uri: vscode.Uri,
    method: M,
    params: (sessionId: string, path: string) => Requests[M]["params"],
  ): Promise<Requests[M]["result"]> {
    const [, sessionId = "", ...rest] = uri.path.split("/");
    try {
      // An editor or a view may ask just after a crash: then its session is to be open again.
      const connection = await this.caisson.sessions.ready();
      return await connection.request(method, params(sessionId, servicePath(rest.join("/"))));
    } catch (thrown) {
      throw fileError(thrown, uri, method === "fs/writeFile");
    }
  }
}

type Requests = import("@caisson/protocol").ClientRequests;
type FileMethod = "fs/stat" | "fs/readDirectory" | "fs/readFile" | "fs/writeFile";

function fileError(thrown: unknown, uri: vscode.Uri, writes: boolean): Error {
  const error = serviceError(thrown);
  switch (fault(error, writes)) {
    case "missing":
      return vscode.FileSystemError.FileNotFound(uri);
    case "refused":
      return vscode.FileSystemError.NoPermissions(error.message);
    case "other":
      return vscode.FileSystemError.Unavailable(sentence(error));
  }
}

function editable(): boolean {
  return settings().get("environmentFiles.editable", false);
}

function statOf(file: FileInfo): vscode.FileStat {
  const time = Date.parse(file.mtime);
  return {
    type: typeOf(file),
    size: file.size,
    ctime: time,
    mtime: time,
    ...(editable() ? {} : { permissions: vscode.FilePermission.Readonly }),
  };
}

function typeOf(file: FileInfo): vscode.FileType {
  switch (file.type) {
    case "file":
      return vscode.FileType.File;
    case "directory":
      return vscode.FileType.Directory;
    case "symlink":
      return vscode.FileType.SymbolicLink;
    default:
      return vscode.FileType.Unknown;
  }
}

/** Whether it is a folder, or a link that leads to one. */
export function isFolder(type: vscode.FileType): boolean {
  return (type & vscode.FileType.Directory) !== 0;
}
