import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type BuildOptions, build } from "esbuild";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");

/** The most that is read and compiled when a window starts, in bytes. */
const budget = 128 << 10;

describe("what a window loads when it starts", () => {
  it("is small, and nothing of others before it is needed", async () => {
    const { options }: { options: BuildOptions } = await import(join(root, "bundle.mjs"));
    const { metafile } = await build({
      ...options,
      absWorkingDir: root,
      write: false,
      metafile: true,
    });
    const output = metafile.outputs["dist/extension.js"];
    expect(output?.bytes).toBeLessThan(budget);
    const others = Object.keys(output?.inputs ?? {}).filter(
      (path) => !/^(src|\.\.\/protocol)\//.test(path),
    );
    expect(others).toEqual([]);
    const later = output?.imports.filter(({ path }) => path === "./rpc.js");
    expect(later?.map(({ kind }) => kind)).toEqual(["require-call"]);
  });

  it("waits for no file", async () => {
    const files = (await readdir(join(root, "src"), { recursive: true })).filter((name) =>
      name.endsWith(".ts"),
    );
    expect(files.length).toBeGreaterThan(30);
    for (const name of files) {
      const text = await readFile(join(root, "src", name), "utf8");
      expect(text.match(/\b\w+Sync\(/g) ?? [], name).toEqual([]);
    }
  });
});
