// Bundles the extension: node build.mjs [--watch]
import { copyFile, mkdir } from "node:fs/promises";
import { context } from "esbuild";

await mkdir("dist", { recursive: true });
await copyFile("../protocol/config.schema.json", "dist/config.schema.json");

const bundle = await context({
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  format: "cjs",
  platform: "node",
  target: "node20",
  external: ["vscode"],
  minify: true,
  sourcemap: true,
  sourcesContent: false,
  logLevel: "warning",
});
if (process.argv.includes("--watch")) {
  await bundle.watch();
} else {
  await bundle.rebuild();
  await bundle.dispose();
}
