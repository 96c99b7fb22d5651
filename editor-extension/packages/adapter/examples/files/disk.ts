import { constants } from "node:fs";
import { lstat, mkdir, open, readdir, realpath, rename, rm } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { AdapterError } from "@caisson/adapter";
import { type Entry, outside, type Store } from "../shared/tools.js";

/** The largest file that is read whole, in bytes. */
const maxFile = 16 * 1024 * 1024;

/**
 * The files below a directory. Links that lead out of it are refused; a program of
 * the same user could still swap one in between check and use, and does not have
 * to: it may do all that this adapter may.
 */
export class Disk implements Store {
  readonly #root: string;

  /** The root's symlinks must be resolved. */
  constructor(root: string) {
    this.#root = root;
  }

  /** Opens the directory, and makes it when that is allowed. */
  static async open(root: string, mustExist: boolean): Promise<string> {
    if (!mustExist) await mkdir(root, { recursive: true, mode: 0o700 });
    return realpath(root).catch((cause: unknown) => {
      throw new AdapterError("environmentLost", `the workspace ${root} is not there`, {
        cause,
        path: root,
      });
    });
  }

  async read(path: string): Promise<Buffer> {
    const file = await open(await this.resolve(path), constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const info = await file.stat();
      if (!info.isFile()) throw wrong(path, "is no regular file");
      if (info.size > maxFile) throw wrong(path, `has ${info.size} bytes; ${maxFile} can be read`);
      return await file.readFile();
    } finally {
      await file.close();
    }
  }

  /** A half-written file is never seen: a new one takes the old one's place. */
  async write(path: string, content: Buffer, createOnly: boolean): Promise<void> {
    if (path === "") throw wrong(path, "is a directory");
    const at = await this.resolve(path).catch(async (error: unknown) => {
      if (!isMissing(error)) throw error;
      return this.#make(path);
    });
    const old = await lstat(at).catch(() => undefined);
    if (old !== undefined && createOnly) throw wrong(path, "exists already");
    if (old !== undefined && !old.isFile()) throw wrong(path, "is no regular file");
    const fresh = join(dirname(at), `.${basename(at)}.${process.pid}.${Date.now()}`);
    try {
      const file = await open(fresh, "wx", old === undefined ? 0o644 : old.mode & 0o777);
      try {
        await file.writeFile(content);
      } finally {
        await file.close();
      }
      await rename(fresh, at);
    } catch (error) {
      await rm(fresh, { force: true });
      throw error;
    }
  }

  async list(path: string): Promise<Entry[]> {
    const directory = await this.resolve(path);
    const entries: Entry[] = [];
    for (const name of await readdir(directory)) {
      const info = await lstat(join(directory, name)).catch(() => undefined);
      if (info === undefined) continue; // it went meanwhile
      entries.push({
        name,
        path: path === "" ? name : `${path}/${name}`,
        is_dir: info.isDirectory(),
        size: info.size,
        mode: (info.mode & 0o7777).toString(8).padStart(4, "0"),
        mtime: info.mtime.toISOString(),
      });
    }
    return entries;
  }

  /** Where a path leads to, links included; never out of the root. */
  async resolve(path: string): Promise<string> {
    const at = await realpath(join(this.#root, path)).catch((cause: unknown) => {
      throw isMissing(cause) ? wrong(path, "does not exist", cause) : cause;
    });
    if (at !== this.#root && !at.startsWith(this.#root + sep)) throw outside(path);
    return at;
  }

  /** Makes the directories above a new file, one by one so that no link leads out. */
  async #make(path: string): Promise<string> {
    const parts = path.split("/");
    const name = parts.pop() ?? "";
    let at = "";
    for (const part of parts) {
      at = at === "" ? part : `${at}/${part}`;
      const directory = await this.resolve(at).catch(async (error: unknown) => {
        if (!isMissing(error)) throw error;
        const above = await this.resolve(dirname(at) === "." ? "" : dirname(at));
        await mkdir(join(above, part));
        return join(above, part);
      });
      if (!(await lstat(directory)).isDirectory()) throw wrong(at, "is no directory");
    }
    const file = join(await this.resolve(at), name);
    // What is there although it does not resolve is a dangling link.
    if (
      await lstat(file).then(
        () => true,
        () => false,
      )
    )
      throw outside(path);
    return file;
  }
}

function isMissing(error: unknown): boolean {
  const cause = error instanceof AdapterError ? error.cause : error;
  return cause instanceof Error && "code" in cause && cause.code === "ENOENT";
}

function wrong(path: string, what: string, cause?: unknown): AdapterError {
  return new AdapterError("invalidParams", `${path || "the workspace"} ${what}`, { path, cause });
}
