// Bundles the extension: node build.mjs [--watch]
import { copyFile, mkdir } from "node:fs/promises";
import { context } from "esbuild";
import { options } from "./bundle.mjs";

await mkdir("dist", { recursive: true });
await copyFile("../protocol/config.schema.json", "dist/config.schema.json");

const bundle = await context(options);
if (process.argv.includes("--watch")) {
  await bundle.watch();
} else {
  await bundle.rebuild();
  await bundle.dispose();
}
