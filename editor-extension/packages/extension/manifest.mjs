// Writes what package.json contributes as language model tools, from the service's
// own description of its tools: node manifest.mjs [--check]
import { readFile, writeFile } from "node:fs/promises";

const tools = JSON.parse(await readFile("../protocol/tools.json", "utf8"));
const before = await readFile("package.json", "utf8");
const manifest = JSON.parse(before);

const icons = {
  file: "$(file)",
  search: "$(search)",
  shell: "$(terminal)",
  git: "$(git-branch)",
  process: "$(play-circle)",
  artifact: "$(package)",
};

manifest.contributes.languageModelTools = tools.map((tool) => ({
  name: `caisson_${tool.name}`,
  displayName: `Caisson: ${tool.name.replaceAll("_", " ")}`,
  toolReferenceName: `caisson_${tool.name}`,
  canBeReferencedInPrompt: true,
  icon: icons[tool.group],
  tags: ["caisson", tool.group, ...(tool.annotations.readOnly ? ["read-only"] : [])],
  userDescription: tool.description.split(/(?<=\.)\s/)[0],
  modelDescription: `${tool.description} Runs in this window's Caisson environment.`,
  inputSchema: tool.inputSchema,
}));

const after = `${JSON.stringify(manifest, null, 2)}\n`;
if (after !== before) {
  if (process.argv.includes("--check")) {
    console.error("package.json is stale: run npm run generate");
    process.exit(1);
  }
  await writeFile("package.json", after);
}
