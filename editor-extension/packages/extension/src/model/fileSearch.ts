/** How many names a search looks at; a larger tree is searched in part. */
const maxNames = 20_000;

/** How often what was found so far is told, in ms: to show a long list takes its time. */
const interval = 200;

/** Folders that a search leaves out, as they hold little that people look for. */
const skipped = new Set([".git", "node_modules", "__pycache__", ".venv"]);

/** A name of a folder, and what is behind it; a link to a folder is none to go into. */
export interface Entry {
  name: string;
  is: "file" | "folder" | "link to a folder";
}

/** How a tree is searched. */
export interface FileSearch {
  /** Reads the folder of the path, "" for the root. */
  read: (path: string) => Promise<Entry[]>;
  /** Whether somebody still waits for it. */
  wanted: () => boolean;
  /** Takes the paths of all files that were found so far. */
  tell: (paths: readonly string[]) => void;
  /** The clock, in ms. */
  now?: () => number;
}

/** Walks a tree breadth first, and tells of its files from time to time and at the end. */
export async function findFiles({ read, wanted, tell, now = Date.now }: FileSearch): Promise<void> {
  const found: string[] = [];
  const folders = [""];
  let told = Number.NEGATIVE_INFINITY;
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    const entries = await read(folder).catch(() => []);
    if (!wanted()) {
      return;
    }
    for (const { name, is } of entries) {
      const path = folder === "" ? name : `${folder}/${name}`;
      if (is === "file") {
        found.push(path);
      } else if (is === "folder" && !skipped.has(name)) {
        folders.push(path); // not by a link, which may lead round in a circle
      }
    }
    const last = folders.length === 0 || found.length + folders.length > maxNames;
    if (last || now() - told >= interval) {
      told = now();
      tell(found);
    }
    if (last) {
      return;
    }
  }
}
