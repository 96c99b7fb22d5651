/**
 * An adapter whose files are in memory, and go when it ends.
 *
 * Commands would see other files than these, so it has none: no bash, no git, no
 * process methods, and it does not announce process.start.v1.
 *
 *     node overlay/main.js
 */
import { AdapterError, run } from "@caisson/adapter";
import { type Entry, fileTool, type Store } from "../shared/tools.js";

/** How much all files may hold together, in bytes. */
const capacity = 256 * 1024 * 1024;

class Memory implements Store {
  readonly #files = new Map<string, { content: Buffer; mtime: string }>();
  #used = 0;

  async read(path: string): Promise<Buffer> {
    const file = this.#files.get(path);
    if (file !== undefined) return file.content;
    if (this.#isDirectory(path)) throw wrong(path, "is a directory");
    throw wrong(path, "does not exist");
  }

  async write(path: string, content: Buffer, createOnly: boolean): Promise<void> {
    const old = this.#files.get(path);
    if (createOnly && old !== undefined) throw wrong(path, "exists already");
    if (this.#isDirectory(path)) throw wrong(path, "is a directory");
    for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", end + 1)) {
      if (this.#files.has(path.slice(0, end))) throw wrong(path.slice(0, end), "is no directory");
    }
    const used = this.#used - (old?.content.length ?? 0) + content.length;
    if (used > capacity) throw wrong(path, "does not fit into memory any more");
    this.#used = used;
    this.#files.set(path, { content, mtime: new Date().toISOString() });
  }

  async list(path: string): Promise<Entry[]> {
    if (this.#files.has(path)) throw wrong(path, "is no directory");
    if (!this.#isDirectory(path)) throw wrong(path, "does not exist");
    const prefix = path === "" ? "" : `${path}/`;
    const entries = new Map<string, Entry>();
    for (const [file, { content, mtime }] of this.#files) {
      if (!file.startsWith(prefix)) continue;
      const [name = "", ...below] = file.slice(prefix.length).split("/");
      const is_dir = below.length > 0;
      const size = is_dir ? 0 : content.length;
      entries.set(name, {
        name,
        path: prefix + name,
        is_dir,
        size,
        mode: is_dir ? "0755" : "0644",
        mtime,
      });
    }
    return [...entries.values()];
  }

  #isDirectory(path: string): boolean {
    return path === "" || [...this.#files.keys()].some((file) => file.startsWith(`${path}/`));
  }
}

function wrong(path: string, what: string): AdapterError {
  return new AdapterError("invalidParams", `${path} ${what}`, { path });
}

const memory = new Memory();

await run({
  initialize: (binding) => {
    if (binding.require_existing_workspace === true) {
      throw new AdapterError("environmentLost", "files in memory do not outlive their adapter");
    }
    return { root: binding.root };
  },
  methods: {
    execute: async (data, { binding }) => {
      const result = await fileTool(memory, binding.root, data);
      if (result !== undefined) return result;
      throw new AdapterError("unsupported", `files in memory have no tool ${data.call.name}`);
    },
  },
});
