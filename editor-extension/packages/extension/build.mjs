// Bundles the extension: node build.mjs [--watch]
import { copyFile, mkdir } from "node:fs/promises";
import { context } from "esbuild";

/** What speaks with the service: a file of its own, which is read at the first need. */
const rpc = "vscode-jsonrpc/node";

await mkdir("dist", { recursive: true });
await copyFile("../protocol/config.schema.json", "dist/config.schema.json");

const bundle = await context({
  entryPoints: { extension: "src/extension.ts", rpc },
  outdir: "dist",
  bundle: true,
  format: "cjs",
  platform: "node",
  target: "node20",
  external: ["vscode"],
  plugins: [
    {
      name: "rpc",
      setup: ({ onResolve }) => {
        onResolve({ filter: new RegExp(`^${rpc}$`) }, ({ kind }) =>
          kind === "entry-point" ? undefined : { path: "./rpc.js", external: true },
        );
      },
    },
  ],
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
