import type { Artifact, Process, ProfileInfo, Session } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { idOf, isAlive } from "../model/processes.js";
import { clip, inDetail } from "../model/question.js";
import { fileName, message, name, visible, withoutIcons } from "../model/shown.js";
import { nameOf, status } from "../model/words.js";
import { ServiceError, serviceError } from "../service/errors.js";
import { compareArtifacts, openArtifact } from "./artifactFiles.js";
import type { DoctorReport } from "./doctor.js";
import type { EnvironmentFiles } from "./environmentFiles.js";
import { pickEnvironmentFile } from "./filePicker.js";
import type { FileTree } from "./fileTree.js";
import { currentFolder, folderOf, keyOf, pickFolder } from "./folders.js";
import { isProcess } from "./processTree.js";
import { openingEnvironment, waitingFor } from "./progress.js";
import { reporting, sentence } from "./report.js";
import { selected } from "./selected.js";
import { folderName, type SessionTree } from "./sessionTree.js";
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

/** The most of a process's output that is copied, in bytes. */
const maxCopied = 8 << 20;

const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGKILL"];

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
    "process.run": () => runCommand(parts),
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

interface ProfileItem extends vscode.QuickPickItem {
  profile?: ProfileInfo;
}

const checkButton: vscode.QuickInputButton = {
  iconPath: new vscode.ThemeIcon("pulse"),
  tooltip: "Check whether this environment can be used now",
};

/** Lets a person choose a profile; a new session is opened on it. */
async function chooseEnvironment(caisson: Caisson): Promise<void> {
  const folder = await pickFolder();
  if (folder === undefined) {
    void vscode.window.showInformationMessage(
      "Open a folder first: a session belongs to the folder that its agents work on.",
    );
    return;
  }
  const current = caisson.sessions.ofFolder(keyOf(folder));
  const profile = await pickProfile(caisson, current);
  if (profile === undefined) {
    return;
  }
  if (!profile.valid) {
    const problem = profile.problem ?? `The profile ${profile.name} cannot be used.`;
    throw new ServiceError(problem, { kind: "configInvalid" });
  }
  const session = await openingEnvironment(`Opening ${profile.name}`, (options) =>
    caisson.sessions.openNew(keyOf(folder), { profile: profile.name, ...options }),
  );
  const left = current === undefined ? "" : `; the one on ${current.profile} stays`;
  void vscode.window.showInformationMessage(
    message(`${folder.name} has a new session on ${session.profile}${left}.`),
  );
}

async function pickProfile(
  caisson: Caisson,
  current: Session | undefined,
): Promise<ProfileInfo | undefined> {
  const picker = vscode.window.createQuickPick<ProfileItem>();
  picker.title = "Choose Environment";
  picker.placeholder =
    current === undefined
      ? "The environment of a new session"
      : `A new session is opened; the one on ${current.profile} never moves`;
  picker.matchOnDescription = true;
  picker.busy = true;
  picker.show();
  const chosen = new Promise<ProfileInfo | undefined>((resolve) => {
    picker.onDidAccept(() => {
      resolve(picker.selectedItems[0]?.profile);
      picker.hide();
    });
    picker.onDidHide(() => {
      resolve(undefined);
      picker.dispose();
    });
  });
  picker.onDidTriggerItemButton(({ item }) => void check(caisson, picker, item));
  try {
    const { profiles, default: byDefault } = await caisson.service.request("profile/list", {});
    picker.items = profiles.map((profile) => profileItem(profile, byDefault, current));
    picker.busy = false;
  } catch (thrown) {
    picker.hide();
    throw thrown;
  }
  return chosen;
}

function profileItem(
  profile: ProfileInfo,
  byDefault: string,
  current: Session | undefined,
): ProfileItem {
  const marks = [
    profile.name === byDefault ? "default" : "",
    profile.name === current?.profile ? "used now" : "",
  ].filter((mark) => mark !== "");
  return {
    label: `${profile.valid ? "$(vm)" : "$(warning)"} ${withoutIcons(profile.name)}`,
    description: withoutIcons([profile.backend, ...marks].join(" · ")),
    detail: withoutIcons(profile.valid ? profile.summary : (profile.problem ?? "")),
    buttons: profile.valid ? [checkButton] : [],
    profile,
  };
}

/** Tries a profile and shows what came of it in its line. */
async function check(
  caisson: Caisson,
  picker: vscode.QuickPick<ProfileItem>,
  item: ProfileItem,
): Promise<void> {
  const { profile } = item;
  if (profile === undefined) {
    return;
  }
  const show = (icon: string, result: string) => {
    const detail = `${icon} ${withoutIcons(result)}`;
    picker.items = picker.items.map((i) => (i.profile === profile ? { ...i, detail } : i));
  };
  show("$(sync~spin)", "Checking…");
  try {
    const health = await caisson.service.request("profile/check", { profile: profile.name });
    const bad = health.checks.find((c) => !c.ok);
    if (bad === undefined) {
      show("$(pass)", `Works: ${health.checks.length} checks in ${health.durationMs} ms`);
    } else {
      show("$(error)", `${bad.name}: ${sentence({ message: bad.detail, hint: bad.hint })}`);
    }
  } catch (thrown) {
    show("$(error)", sentence(serviceError(thrown)));
  }
}

async function newSession(caisson: Caisson): Promise<void> {
  const folder = await pickFolder();
  if (folder !== undefined) {
    await openingEnvironment("Opening a new session", (options) =>
      caisson.sessions.openNew(keyOf(folder), options),
    );
  }
}

async function useSession(caisson: Caisson, session: Session): Promise<void> {
  const folder = folderOf(session);
  if (folder === undefined) {
    throw new ServiceError("The session belongs to a folder that is not open in this window.", {
      kind: "unsupported",
      hint: `Open the folder ${folderName(session)} first.`,
    });
  }
  const opened = await openingEnvironment(`Opening ${session.profile}`, (options) =>
    caisson.sessions.reopen(session, options),
  );
  caisson.sessions.use(keyOf(folder), opened);
}

async function forkSession(caisson: Caisson, session: Session): Promise<void> {
  await openingEnvironment(`Forking ${folderName(session)}`, (options) =>
    caisson.sessions.fork(session.id, options),
  );
}

async function closeSession(caisson: Caisson, session: Session): Promise<void> {
  const kept = session.persistent
    ? "Its files are kept."
    : session.backend === "local"
      ? "The folder stays as it is."
      : "Its environment is removed, with the files in it.";
  if (
    await confirmed(
      `Close the session on ${session.profile}?`,
      `Its processes end. ${kept}`,
      "Close",
    )
  ) {
    await waitingFor(`Closing ${session.profile}`, () => caisson.sessions.close(session.id));
  }
}

async function deleteSession(caisson: Caisson, session: Session): Promise<void> {
  const detail = "Its processes end, and its environment is removed with the files in it.";
  if (!(await confirmed(`Delete the session on ${session.profile}?`, detail, "Delete"))) {
    return;
  }
  let left: string | undefined;
  try {
    left = await waitingFor(`Deleting ${session.profile}`, () =>
      caisson.sessions.delete(session.id),
    );
  } catch (thrown) {
    const error = serviceError(thrown);
    if (error.kind !== "backendUnavailable") {
      throw error;
    }
    const forget = `Forget it all the same? What is left there is not removed.\n\n${error.message}`;
    if (await confirmed("The environment cannot be reached.", forget, "Forget")) {
      left = await caisson.sessions.delete(session.id, true);
    }
  }
  if (left) {
    void vscode.window.showWarningMessage(message(left));
  }
}

async function confirmed(question: string, detail: string, yes: string): Promise<boolean> {
  // An error may be of any length, and the question has to fit the window.
  const options = { modal: true, detail: clip(visible(detail), inDetail) };
  return (await vscode.window.showWarningMessage(question, options, yes)) === yes;
}

/** Starts a command in the environment of the current folder, in a terminal. */
async function runCommand({ caisson, terminals }: Parts): Promise<void> {
  const folder = await pickFolder();
  if (folder === undefined) {
    return;
  }
  const command = await vscode.window.showInputBox({
    title: "Run in Environment",
    prompt: "A shell command; it runs in the background and keeps its output",
  });
  if (!command) {
    return;
  }
  const session = await openingEnvironment("Opening the environment", (options) =>
    caisson.sessions.forFolder(keyOf(folder), options),
  );
  const { process } = await caisson.service.request("process/start", {
    sessionId: session.id,
    command,
    tty: { cols: 80, rows: 24 },
  });
  await terminals.show(process);
}

/** Does something to a process: the one that was clicked, or one that a person picks. */
async function withProcess(
  caisson: Caisson,
  argument: unknown,
  work: (process: Process) => Promise<void>,
  suits: (process: Process) => boolean = () => true,
): Promise<void> {
  const process = asProcess(caisson, argument) ?? (await pickProcess(caisson, suits));
  if (process !== undefined) {
    await work(process);
  }
}

async function pickProcess(
  caisson: Caisson,
  suits: (process: Process) => boolean,
): Promise<Process | undefined> {
  await caisson.sessions.ready();
  const items = caisson.sessions
    .list()
    .flatMap((session) => caisson.processes.ofSession(session.id))
    .filter(suits)
    .map((process) => ({
      label: withoutIcons(nameOf(process)),
      description: withoutIcons(`${status(process)} · ${process.environment.profile}`),
      process,
    }));
  const placeHolder = items.length === 0 ? "No process" : "Choose a process";
  return (await vscode.window.showQuickPick(items, { placeHolder }))?.process;
}

async function stopProcess(caisson: Caisson, process: Process): Promise<void> {
  await waitingFor(`Stopping ${nameOf(process)}`, () => caisson.processes.stop(process));
}

async function sendSignal(caisson: Caisson, process: Process): Promise<void> {
  const placeHolder = `The signal for ${nameOf(process)} and what it started`;
  const signal = await vscode.window.showQuickPick(signals, { placeHolder });
  if (signal !== undefined) {
    await caisson.processes.signal(process, signal);
  }
}

async function copyOutput(caisson: Caisson, process: Process): Promise<void> {
  const service = await caisson.sessions.ready();
  const read = await service.request("process/read", {
    ...idOf(process),
    tailBytes: maxCopied,
    maxBytes: maxCopied,
  });
  await vscode.env.clipboard.writeText(read.data);
  const all = read.startOffset === 0 ? "" : " (its end: the whole is too long)";
  const copied = `Copied the output of ${nameOf(process)}${all}`;
  vscode.window.setStatusBarMessage(withoutIcons(copied), 4000);
}

async function oneArtifact(caisson: Caisson, argument: unknown): Promise<Artifact> {
  if (isArtifact(argument)) {
    return argument;
  }
  if (caisson.artifacts.list().length === 0) {
    await caisson.artifacts.load(); // perhaps nothing needed the service yet
  }
  const items = caisson.artifacts.list().map((artifact) => ({
    label: withoutIcons(name(artifact.name)),
    description: withoutIcons(name(artifact.source.path)),
    artifact,
  }));
  const placeHolder = items.length === 0 ? "No artifact" : "Choose an artifact";
  const chosen = await vscode.window.showQuickPick(items, { placeHolder });
  if (chosen === undefined) {
    throw new vscode.CancellationError();
  }
  return chosen.artifact;
}

async function saveArtifact(caisson: Caisson, artifact: Artifact): Promise<void> {
  const folder = currentFolder()?.uri;
  const proposed = fileName(artifact.name);
  const target = await vscode.window.showSaveDialog({
    ...(folder === undefined ? {} : { defaultUri: vscode.Uri.joinPath(folder, proposed) }),
    title: `Save ${name(artifact.name)}`,
  });
  if (target === undefined) {
    return;
  }
  if (target.scheme === "file") {
    await caisson.artifacts.save(artifact, target.fsPath);
  } else {
    await vscode.workspace.fs.writeFile(target, await caisson.artifacts.read(artifact));
  }
}

async function compare(caisson: Caisson, argument: unknown, all: unknown): Promise<void> {
  const selected = Array.isArray(all) ? all.filter(isArtifact) : [];
  const [first, second] =
    selected.length === 2 ? selected : [await oneArtifact(caisson, argument), undefined];
  if (first === undefined) {
    return;
  }
  const other = second ?? (await pickOther(caisson, first));
  if (other !== undefined) {
    await compareArtifacts(caisson, first, other);
  }
}

/** The other side of a comparison: earlier versions of the same name come first. */
async function pickOther(caisson: Caisson, first: Artifact): Promise<Artifact | undefined> {
  const others = caisson.artifacts.list().filter((a) => a.uri !== first.uri);
  const same = (a: Artifact) => Number(a.name === first.name);
  const items = others
    .sort((a, b) => same(b) - same(a))
    .map((artifact) => ({
      label: withoutIcons(name(artifact.name)),
      description: new Date(artifact.createdAt).toLocaleString(),
      artifact,
    }));
  const placeHolder = `Compare ${name(first.name)} with`;
  return (await vscode.window.showQuickPick(items, { placeHolder }))?.artifact;
}

async function deleteArtifact(caisson: Caisson, artifact: Artifact): Promise<void> {
  const detail = "The file in the environment stays; this copy of it goes.";
  if (await confirmed(`Delete the artifact ${name(artifact.name)}?`, detail, "Delete")) {
    await caisson.artifacts.delete(artifact);
  }
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

function asSession(argument: unknown): Session {
  if (typeof argument === "object" && argument !== null && "environmentId" in argument) {
    return argument as Session;
  }
  throw new Error("Choose a session in the list of sessions.");
}

function asProcess(caisson: Caisson, argument: unknown): Process | undefined {
  return isProcess(argument) ? (caisson.processes.get(argument.id) ?? argument) : undefined;
}

function isArtifact(argument: unknown): argument is Artifact {
  return typeof argument === "object" && argument !== null && "mediaType" in argument;
}
