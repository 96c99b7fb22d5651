/** What speaks with the service: a file of its own, which is read at the first need. */
const rpc = "vscode-jsonrpc/node";

/** How the extension is bundled; the tests look at the same. */
export const options = {
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
};
