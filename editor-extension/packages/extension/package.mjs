// Packages the extension with the program for one platform:
//
//	node package.mjs OUT PROGRAM-FOLDER [TARGET]
//
// The folder holds caisson and, beside it, the far ends for environments; TARGET
// is the editor's word for the platform, by default this one's.
import { chmod, copyFile, cp, readdir, rm } from "node:fs/promises";
import { createVSIX } from "@vscode/vsce";

const [out, programs, target = `${process.platform}-${process.arch}`] = process.argv.slice(2);
if (out === undefined || programs === undefined) {
  console.error("usage: node package.mjs OUT PROGRAM-FOLDER [TARGET]");
  process.exit(2);
}
await rm("bin", { recursive: true, force: true });
await cp(programs, "bin", { recursive: true });
for (const name of await readdir("bin")) {
  await chmod(`bin/${name}`, 0o755);
}
await copyFile("../../../LICENSE", "LICENSE");
await createVSIX({ packagePath: out, target, dependencies: false });
