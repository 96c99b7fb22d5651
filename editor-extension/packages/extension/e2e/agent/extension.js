// An agent that does what it is told over a socket: one JSON object a line each way,
// {id, op, args} and {id, result} or {id, error}. It reaches Caisson as any other
// extension does. Each window has a socket of its own, by the number that stands in
// the file "window" while it starts: nobody reaches the agent of one that was left.
const { createServer } = require("node:net");
const { createInterface } = require("node:readline");
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const vscode = require("vscode");

exports.activate = async (context) => {
  const extension = vscode.extensions.getExtension("caisson-dev.caisson");
  const caisson = await extension.activate();
  const seen = { processes: [], artifacts: [] };
  caisson.onProcess((event) => seen.processes.push(event));
  caisson.onArtifact((artifact) => seen.artifacts.push(artifact));

  const folderAt = (number) => {
    if (number < 0) {
      return undefined; // the current one
    }
    const folder = vscode.workspace.workspaceFolders?.[number];
    if (folder === undefined) {
      throw new Error(`the window has no folder number ${number}`);
    }
    return folder;
  };

  const operations = {
    folders: () => (vscode.workspace.workspaceFolders ?? []).map(({ name }) => name),
    // The window has this folder behind its first one, or none but the first.
    setSecondFolder: (path) => {
      const count = vscode.workspace.workspaceFolders.length - 1;
      const added = path === null ? [] : [{ uri: vscode.Uri.file(path) }];
      return vscode.workspace.updateWorkspaceFolders(1, count, ...added);
    },
    open: (options, folder) => caisson.open(folderAt(folder), options),
    call: (session, name, input) => caisson.call(session, name, input),
    start: (session, command, options) => caisson.start(session, command, options),
    seen: () => seen,
    invokeTool: async (name, input) => {
      const token = new vscode.CancellationTokenSource().token;
      const result = await vscode.lm.invokeTool(
        name,
        { input, toolInvocationToken: undefined },
        token,
      );
      return result.content.map((part) => part.value);
    },
    edit: async (path, behind) => {
      const document = await vscode.workspace.openTextDocument(path);
      const cursor = document.positionAt(document.getText().indexOf(behind) + behind.length);
      const selection = new vscode.Range(cursor, cursor);
      await vscode.window.showTextDocument(document, { preview: false, selection });
    },
    configure: async (name, value) => {
      await vscode.workspace.getConfiguration().update(name, value ?? undefined, true);
    },
    problems: (path) =>
      vscode.languages.getDiagnostics(vscode.Uri.file(path)).map(({ message }) => message),
  };

  const sockets = process.env.CAISSON_E2E_SOCKETS;
  const path = join(sockets, readFileSync(join(sockets, "window"), "utf8"));
  const server = createServer((socket) => {
    createInterface({ input: socket }).on("line", async (line) => {
      const { id, op, args } = JSON.parse(line);
      let answer;
      try {
        answer = { id, result: (await operations[op](...args)) ?? null };
      } catch (error) {
        answer = { id, error: { message: error.message, data: error.data } };
      }
      socket.write(`${JSON.stringify(answer)}\n`);
    });
    socket.on("error", () => undefined);
  }).listen(path);
  context.subscriptions.push({ dispose: () => server.close() });
};
