/** The file tools of two examples, over whatever keeps the files. */
import { createHash } from "node:crypto";
import { AdapterError, type Execute, type ToolCall, type ToolResult } from "@caisson/adapter";

/** What keeps files. Paths are relative to the root, with slashes; "" is the root. */
export interface Store {
  /** The whole content; a missing file throws. */
  read(path: string): Promise<Buffer>;
  /** Replaces the content; with `createOnly` an existing file throws. */
  write(path: string, content: Buffer, createOnly: boolean): Promise<void>;
  /** The entries of a directory, in no order. */
  list(path: string): Promise<Entry[]>;
}

/** One entry of a directory. */
export interface Entry {
  readonly name: string;
  readonly path: string;
  readonly is_dir: boolean;
  /** In bytes. */
  readonly size: number;
  /** Four octal digits. */
  readonly mode: string;
  /** RFC 3339. */
  readonly mtime: string;
}

/** How many entries or lines one page has. */
const page = 1000;

/** The largest file that a tool reads whole, in bytes: a result has 3 MiB at most. */
const maxText = 2 * 1024 * 1024;

/** Runs a file tool; undefined for any other tool. */
export async function fileTool(
  store: Store,
  root: string,
  { call, permission_mode }: Execute,
): Promise<ToolResult | undefined> {
  const args = new Arguments(call);
  const path = (): string => relative(root, args.text("path"));
  const writes = call.name === "write_file" || call.name === "edit_file";
  if (writes && permission_mode === "read_only") {
    throw new AdapterError("denied", `${call.name} writes, and this call may only read`);
  }
  switch (call.name) {
    case "read_file":
      return read(store, path(), args);
    case "write_file": {
      const encoding = args.text("encoding", "utf8") === "base64" ? "base64" : "utf8";
      const content = Buffer.from(args.text("content"), encoding);
      return change(store, path(), () => content, args.flag("create_only"));
    }
    case "edit_file":
      return change(store, path(), (old) => edit(old, args), false);
    case "list_files": {
      const directory = relative(root, args.text("path", ""));
      const entries = await store.list(directory);
      entries.sort((a, b) => (a.name < b.name ? -1 : 1));
      return paged({ path: directory || "." }, "entries", entries, args.count("offset", 0));
    }
    default:
      return undefined;
  }
}

/** A result that is one object. */
export function structured(value: unknown): ToolResult {
  return { structured_content: value };
}

/** The arguments of a call, each checked when it is asked for. */
export class Arguments {
  readonly #tool: string;
  readonly #all: Readonly<Record<string, unknown>>;

  constructor(call: ToolCall) {
    this.#tool = call.name;
    this.#all = JSON.parse(call.arguments); // the kit has checked that it is an object
  }

  text(name: string, otherwise?: string): string {
    const value = this.#all[name] ?? otherwise;
    if (typeof value !== "string") throw this.#wrong(name, "a string");
    return value;
  }

  flag(name: string): boolean {
    const value = this.#all[name] ?? false;
    if (typeof value !== "boolean") throw this.#wrong(name, "true or false");
    return value;
  }

  /** A whole number that is not negative. */
  count<T extends number | undefined>(name: string, otherwise: T): number | T {
    const value = this.#all[name];
    if (value === undefined || value === null) return otherwise;
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
      throw this.#wrong(name, "a whole number");
    }
    return value;
  }

  texts(name: string): string[] {
    const value = this.#all[name] ?? [];
    if (!Array.isArray(value) || !value.every((v) => typeof v === "string")) {
      throw this.#wrong(name, "a list of strings");
    }
    return value;
  }

  #wrong(name: string, what: string): AdapterError {
    return new AdapterError("invalidParams", `${this.#tool}: ${name} must be ${what}`, {
      path: name,
    });
  }
}

/** The path below the root that a tool's path means, "" for the root itself. */
export function relative(root: string, path: string): string {
  const below =
    path === root ? "" : path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
  const parts: string[] = [];
  for (const part of below.split("/")) {
    if (part === ".." && parts.pop() === undefined) throw outside(path);
    if (part !== "" && part !== "." && part !== "..") parts.push(part);
  }
  if (below.startsWith("/") || below.includes("\0")) throw outside(path);
  return parts.join("/");
}

/** The error for a path that leads out of the root. */
export function outside(path: string): AdapterError {
  return new AdapterError("pathOutsideRoot", `${path} is outside of the workspace`, { path });
}

function paged(head: object, member: string, all: readonly unknown[], offset: number): ToolResult {
  const some = all.slice(offset, offset + page);
  return structured({
    ...head,
    [member]: some,
    total: all.length,
    offset,
    returned_count: some.length,
    has_more: offset + some.length < all.length,
  });
}

async function read(store: Store, path: string, args: Arguments): Promise<ToolResult> {
  const content = await store.read(path);
  const content_sha256 = hash(content);
  if (args.text("encoding", "utf8") === "base64") {
    const byte_offset = args.count("byte_offset", 0);
    const some = content.subarray(byte_offset, byte_offset + args.count("byte_limit", maxText / 2));
    return structured({
      path,
      encoding: "base64",
      content: some.toString("base64"),
      content_sha256,
      byte_offset,
      num_bytes: some.length,
      size: content.length,
      truncated: byte_offset + some.length < content.length,
    });
  }
  const lines = content.toString("utf8").split(/(?<=\n)/);
  const total_lines = content.length === 0 ? 0 : lines.length;
  const start_line = Math.max(1, args.count("offset", 1));
  const some: string[] = [];
  let left = maxText;
  for (const line of lines.slice(start_line - 1, start_line - 1 + args.count("limit", page))) {
    left -= Buffer.byteLength(line);
    if (left < 0) break;
    some.push(line);
  }
  return structured({
    path,
    content: some.join(""),
    content_sha256,
    start_line,
    num_lines: total_lines === 0 ? 0 : some.length,
    total_lines,
    truncated: start_line - 1 + some.length < total_lines,
  });
}

async function change(
  store: Store,
  path: string,
  make: (old: Buffer) => Buffer,
  createOnly: boolean,
): Promise<ToolResult> {
  const old = await store.read(path).catch((error: unknown) => {
    if (error instanceof AdapterError && error.message.endsWith("does not exist")) return undefined;
    throw error;
  });
  const content = make(old ?? Buffer.alloc(0));
  await store.write(path, content, createOnly);
  return structured({
    path,
    written_bytes: content.length,
    ...(old !== undefined && { old_file_sha: hash(old) }),
    new_file_sha: hash(content),
    diff: diff(path, old ?? Buffer.alloc(0), content),
  });
}

function edit(old: Buffer, args: Arguments): Buffer {
  const [from, to] = [args.text("old_text"), args.text("new_text")];
  const pieces = old.toString("utf8").split(from);
  if (from === "" || pieces.length < 2) throw refused("old_text is not in the file");
  if (pieces.length > 2 && !args.flag("replace_all")) {
    throw refused(
      `old_text is in the file ${pieces.length - 1} times; give more of its surroundings`,
    );
  }
  return Buffer.from(pieces.join(to));
}

function refused(message: string): AdapterError {
  return new AdapterError("invalidParams", message, { path: "old_text" });
}

function hash(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

/** A unified diff of one hunk: what lies between the first and the last line that differ. */
function diff(path: string, before: Buffer, after: Buffer): string {
  const [old, now] = [before, after].map((b) =>
    b.length === 0 ? [] : b.toString("utf8").split(/(?<=\n)/),
  );
  if (old === undefined || now === undefined || before.equals(after)) return "";
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (
    tail < Math.min(old.length, now.length) - head &&
    old[old.length - 1 - tail] === now[now.length - 1 - tail]
  ) {
    tail++;
  }
  const mark = (sign: string, lines: string[]): string =>
    lines
      .slice(head, lines.length - tail)
      .map(
        (line) =>
          `${sign}${line.endsWith("\n") ? line : `${line}\n\\ No newline at end of file\n`}`,
      )
      .join("");
  const range = (lines: string[]): string => {
    const length = lines.length - tail - head;
    return `${length === 0 ? head : head + 1},${length}`;
  };
  return `--- a/${path}\n+++ b/${path}\n@@ -${range(old)} +${range(now)} @@\n${mark("-", old)}${mark("+", now)}`;
}
