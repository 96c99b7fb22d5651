import * as vscode from "vscode";
import type { CaissonApi } from "./api.js";
import { Caisson } from "./caisson.js";
import {
  ArtifactDocuments,
  ArtifactFiles,
  artifactScheme,
  beginningScheme,
  hexScheme,
} from "./editor/artifactFiles.js";
import { ArtifactTree } from "./editor/artifactTree.js";
import { CallQuestions } from "./editor/callQuestion.js";
import { registerCommands } from "./editor/commands.js";
import { tellConfiguration } from "./editor/configuration.js";
import { answerConfirmations } from "./editor/confirmation.js";
import { DoctorReport } from "./editor/doctor.js";
import { tellEndings } from "./editor/endings.js";
import { EnvironmentFiles, environmentScheme } from "./editor/environmentFiles.js";
import { exportedApi } from "./editor/exports.js";
import { FileTree } from "./editor/fileTree.js";
import { currentFolder, keyOf } from "./editor/folders.js";
import { keepFresh } from "./editor/fresh.js";
import { registerLanguageModelTools } from "./editor/languageModelTools.js";
import { ProcessTree } from "./editor/processTree.js";
import { followProgram } from "./editor/program.js";
import { report, reportGivenUp } from "./editor/report.js";
import { SessionTree } from "./editor/sessionTree.js";
import { StatusBar } from "./editor/statusBar.js";
import { Terminals } from "./editor/terminal.js";

/** What the view of processes says beside those that it knows. */
const notKnown =
  "The session of this folder could not be taken up, and what runs in it is not known here. Its line in the list of sessions tells why.";

let current: Caisson | undefined;

/** Puts everything in place. No service is started before something needs it. */
export function activate(context: vscode.ExtensionContext): CaissonApi {
  const caisson = new Caisson(context);
  current = caisson;
  const terminals = new Terminals(caisson);
  const doctor = new DoctorReport(caisson);
  const asking = new CallQuestions();
  answerConfirmations(caisson, asking);
  const artifactFiles = new ArtifactFiles(caisson);
  const artifactDocuments = new ArtifactDocuments(artifactFiles, caisson.artifacts);
  const files = new EnvironmentFiles(caisson);
  const sessionTree = new SessionTree(caisson);
  const processTree = new ProcessTree(caisson);
  // A service that is down is not started by a view that shows itself anew.
  const shownSession = () => (caisson.service.running ? sessionHere(caisson) : undefined);
  const fileTree = new FileTree(files, shownSession, context.subscriptions);
  const artifactTree = new ArtifactTree(caisson);
  const sessionView = vscode.window.createTreeView("caisson.sessions", {
    treeDataProvider: sessionTree,
  });
  const processView = vscode.window.createTreeView("caisson.processes", {
    treeDataProvider: processTree,
  });
  const artifactView = vscode.window.createTreeView("caisson.artifacts", {
    treeDataProvider: artifactTree,
    canSelectMany: true,
  });
  const fileView = vscode.window.createTreeView("caisson.files", { treeDataProvider: fileTree });
  const views = [sessionView, processView, artifactView, fileView];
  const begin = () => (views.some((view) => view.visible) ? look(caisson) : takeUp(caisson));
  context.subscriptions.push(
    caisson,
    terminals,
    doctor,
    artifactFiles,
    files,
    new StatusBar(caisson),
    tellEndings(caisson, terminals),
    tellConfiguration(caisson, sessionView),
    ...views,
    // Somebody looks: now it is worth to know.
    ...views.map((view) =>
      view.onDidChangeVisibility(({ visible }) => {
        if (visible) {
          void look(caisson);
        }
      }),
    ),
    processView.onDidChangeVisibility(({ visible }) => processTree.setVisible(visible)),
    keepFresh(sessionView, () => sessionTree.refresh()),
    keepFresh(artifactView, () => artifactTree.refresh()),
    asking,
    followProgram(caisson),
    caisson.service.onDidGiveUp((error) => void reportGivenUp(error)),
    caisson.service.onDidFallSilent((error) => void reportGivenUp(error)),
    // The views say that nobody knows what runs, and not that nothing does.
    caisson.service.onDidChange(({ is }) => {
      const down = is === "waiting" || is === "failed";
      void vscode.commands.executeCommand("setContext", "caisson.down", down);
    }),
    caisson.sessions.onDidChange(() => {
      fileTree.refresh();
      // Nor does a session that another window has tell what runs in it.
      const unknown = caisson.sessions
        .list()
        .some(
          (s) =>
            (s.state === "failed" || s.heldBy !== undefined || caisson.sessions.isFreed(s.id)) &&
            caisson.sessions.isUsed(s.id),
        );
      processView.message = unknown ? notKnown : "";
    }),
    vscode.workspace.registerFileSystemProvider(artifactScheme, artifactFiles, {
      isReadonly: true,
      isCaseSensitive: true,
    }),
    ...[hexScheme, beginningScheme].map((scheme) =>
      vscode.workspace.registerTextDocumentContentProvider(scheme, artifactDocuments),
    ),
    vscode.workspace.registerFileSystemProvider(environmentScheme, files, {
      isCaseSensitive: true,
    }),
    ...registerCommands({
      caisson,
      sessionTree,
      fileTree,
      files,
      terminals,
      doctor,
      processView,
      artifactView,
    }),
    ...registerLanguageModelTools(caisson, asking),
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      // What could not start before is no failure any more.
      void caisson.service.stop().then(begin);
    }),
    // A window of a workspace file has none at first.
    vscode.workspace.onDidChangeWorkspaceFolders(() => {
      caisson.sessions.foldersChanged();
      void begin();
    }),
    vscode.window.onDidChangeActiveTextEditor(() => fileTree.follow()),
    vscode.window.onDidChangeWindowState(({ focused }) => {
      if (focused) {
        void caisson.sessions.takeUpFreed();
      }
    }),
  );
  void takeUp(caisson);
  return exportedApi(caisson);
}

/** Waits until the service is gone: its environments live on as their profiles say. */
export async function deactivate(): Promise<void> {
  await current?.service.stop();
}

/** After a reload: a window that had a session has processes to show. */
async function takeUp(caisson: Caisson): Promise<void> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const used = folders.some((f) => caisson.sessions.rememberedOf(keyOf(f)) !== undefined);
  if (used && vscode.workspace.isTrusted) {
    // A failure is the state of the service, which the status bar shows.
    await caisson.service.ensure().catch(() => undefined);
  }
}

/**
 * Makes known what there is when a view is looked at: the service runs, and the
 * folder has a session, whose environment is made only when something runs in it.
 */
async function look(caisson: Caisson): Promise<void> {
  if (!vscode.workspace.isTrusted) {
    return;
  }
  try {
    await caisson.service.ensure();
    const folder = currentFolder();
    if (folder !== undefined) {
      await caisson.sessions.forFolder(keyOf(folder), { connect: false });
    }
  } catch (thrown) {
    void report(thrown);
  }
}

function sessionHere(caisson: Caisson) {
  const folder = currentFolder();
  return folder === undefined ? undefined : caisson.sessions.ofFolder(keyOf(folder));
}
