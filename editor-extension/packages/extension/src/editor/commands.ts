import type { Artifact, Process, Session } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { isAlive } from "../model/processes.js";
import { ServiceError } from "../service/errors.js";
import { compare, deleteArtifact, oneArtifact, saveArtifact } from "./artifactCommands.js";
import { openArtifact } from "./artifactFiles.js";
import type { DoctorReport } from "./doctor.js";
import type { EnvironmentFiles } from "./environmentFiles.js";
import { pickEnvironmentFile } from "./filePicker.js";
import type { FileTree } from "./fileTree.js";
import { keyOf, pickFolder } from "./folders.js";
import { copyOutput, runCommand, sendSignal, stopProcess, withProcess } from "./processCommands.js";
import { openingEnvironment, waitingFor } from "./progress.js";
import { reporting } from "./report.js";
import { selected } from "./selected.js";
import {
  asSession,
  chooseEnvironment,
  closeSession,
  deleteSession,
  forkSession,
  newSession,
  useSession,
} from "./sessionCommands.js";
import type { SessionTree } from "./sessionTree.js";
import type { Terminals } from "./terminal.js";

/** What the commands work with beside the service. */
export interface Parts {
  caisson: Caisson;
  sessionTree: SessionTree;
  fileTree: FileTree;
  files: EnvironmentFiles;
  terminals: Terminals;
  doctor: DoctorReport;
  processView: vscode.TreeView<Session | Process>;
  artifactView: vscode.TreeView<Artifact>;
}

/** Registers every command, each with its failures shown. */
export function registerCommands(parts: Parts): vscode.Disposable[] {
  const { caisson, terminals } = parts;
  const table: Record<string, (argument?: unknown, more?: unknown) => Promise<void>> = {
    chooseEnvironment: () => chooseEnvironment(caisson),
    newSession: () => newSession(caisson),
    "session.use": (s) => useSession(caisson, asSession(s)),
    "session.fork": (s) => forkSession(caisson, asSession(s)),
    "session.close": (s) => closeSession(caisson, asSession(s)),
    "session.delete": (s) => deleteSession(caisson, asSession(s)),
    "process.run": () => runCommand(caisson, terminals),
    "process.open": async (p) => withProcess(caisson, p, (process) => terminals.show(process)),
    "process.openSelected": async () =>
      withProcess(caisson, await selected(parts.processView), (process) => terminals.show(process)),
    "process.stop": async (p) =>
      withProcess(caisson, p, (process) => stopProcess(caisson, process), isAlive),
    "process.signal": async (p) =>
      withProcess(caisson, p, (process) => sendSignal(caisson, process), isAlive),
    "process.copyOutput": async (p) =>
      withProcess(caisson, p, (process) => copyOutput(caisson, process)),
    "artifact.open": async (a) => openArtifact(caisson, await oneArtifact(caisson, a)),
    "artifact.openSelected": async () =>
      openArtifact(caisson, await oneArtifact(caisson, await selected(parts.artifactView))),
    "artifact.saveAs": async (a) => saveArtifact(caisson, await oneArtifact(caisson, a)),
    "artifact.compare": async (a, all) => compare(caisson, a, all),
    "artifact.delete": async (a) => deleteArtifact(caisson, await oneArtifact(caisson, a)),
    "environment.openFile": () => openEnvironmentFile(parts),
    refresh: async () => refresh(parts),
    restartService: async () =>
      waitingFor("Caisson restarts its service", () => caisson.service.restart()),
    openConfiguration: () => openConfiguration(caisson),
    showDoctorReport: () => parts.doctor.show(),
    showLog: async () => caisson.log.show(),
  };
  return Object.entries(table).map(([name, work]) =>
    vscode.commands.registerCommand(`caisson.${name}`, reporting(work)),
  );
}

async function openEnvironmentFile({ caisson, files }: Parts): Promise<void> {
  const folder = await pickFolder();
  if (folder === undefined) {
    return;
  }
  const session = await openingEnvironment("Opening the environment", (options) =>
    caisson.sessions.forFolder(keyOf(folder), options),
  );
  const uri = await pickEnvironmentFile(files, session);
  if (uri !== undefined) {
    await vscode.commands.executeCommand("vscode.open", uri);
  }
}

async function refresh({ caisson, sessionTree, fileTree }: Parts): Promise<void> {
  await caisson.service.ensure();
  await caisson.sessions.load();
  await caisson.artifacts.load();
  sessionTree.refresh();
  fileTree.refresh();
}

async function openConfiguration(caisson: Caisson): Promise<void> {
  const path = await caisson.configurationFile();
  if (path === "") {
    throw new ServiceError("The service reads no configuration file.", {
      kind: "unsupported",
      hint: "Look at the setting caisson.serviceArguments.",
    });
  }
  const uri = vscode.Uri.file(path);
  try {
    await vscode.workspace.fs.stat(uri);
  } catch (thrown) {
    if (!(thrown instanceof vscode.FileSystemError && thrown.code === "FileNotFound")) {
      throw thrown; // it may be there, and hold something
    }
    await vscode.workspace.fs.writeFile(uri, Buffer.from(emptyConfiguration));
  }
  await vscode.window.showTextDocument(uri);
}

/** What a configuration file begins with where there is none. */
const emptyConfiguration = `// Execution environments for coding agents; the editor completes what may stand here.
{
  "execution_environments": {
    "default": "local",
    "profiles": {
      // "isolated": { "backend": "docker", "image": "debian:bookworm-slim" }
    }
  }
}
`;
