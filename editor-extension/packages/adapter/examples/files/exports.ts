import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, mkdir, open, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import {
  AdapterError,
  EXPORT_CHUNK,
  type ExportData,
  MAX_EXPORT,
  type ToolResult,
} from "@caisson/adapter";

/** Immutable copies of presented files. */
export class Exports {
  readonly #directory: string;
  /** Sizes by token. */
  readonly #sizes = new Map<string, number>();

  /** Copies are kept in the directory. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Copies a file and names the copy. */
  async present(file: string): Promise<ToolResult> {
    const info = await stat(file);
    if (!info.isFile())
      throw new AdapterError("invalidParams", `${file} is no regular file`, { path: file });
    if (info.size > MAX_EXPORT) {
      throw new AdapterError("artifactTooLarge", `${file} has more than ${MAX_EXPORT} bytes`, {
        path: file,
      });
    }
    const token = randomBytes(16).toString("hex");
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await copyFile(file, this.#path(token), constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    const { size } = await stat(this.#path(token));
    this.#sizes.set(token, size);
    const presented = { execution_export: token, name: basename(file), size };
    return { content: [{ type: "text", text: JSON.stringify(presented) }] };
  }

  async read(token: string, offset: number): Promise<ExportData> {
    const size = this.#sizes.get(token);
    if (size === undefined) throw new AdapterError("artifactNotFound", "there is no such export");
    const file = await open(this.#path(token), "r");
    try {
      const length = Math.max(0, Math.min(EXPORT_CHUNK, size - offset));
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
      const data = buffer.subarray(0, bytesRead).toString("base64");
      return { data, eof: offset + bytesRead >= size };
    } finally {
      await file.close();
    }
  }

  async close(token: string): Promise<Record<string, never>> {
    if (this.#sizes.delete(token)) await rm(this.#path(token), { force: true });
    return {};
  }

  /** Removes what was not closed. */
  async closeAll(): Promise<void> {
    for (const token of this.#sizes.keys()) await this.close(token);
  }

  #path(token: string): string {
    return join(this.#directory, token);
  }
}
