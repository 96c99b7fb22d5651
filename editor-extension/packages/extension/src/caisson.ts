import * as vscode from "vscode";
import { openFolders } from "./editor/folders.js";
import { Log } from "./editor/log.js";
import { Artifacts } from "./model/artifacts.js";
import { Configuration } from "./model/configuration.js";
import { Processes } from "./model/processes.js";
import { Sessions } from "./model/sessions.js";
import { launch } from "./service/child.js";
import type { Connection } from "./service/connection.js";
import { locate, type Program, serviceArguments } from "./service/locate.js";
import { Service } from "./service/service.js";

/** How much of an artifact its announcement brings along: the list shows none. */
const previewMaxBytes = 4096;

/**
 * What every part of the extension works with: the service of this window, and what
 * it told of sessions, processes and artifacts.
 */
export class Caisson implements vscode.Disposable {
  readonly log = new Log();
  readonly service: Service;
  readonly sessions: Sessions;
  readonly processes: Processes;
  readonly artifacts: Artifacts;
  readonly configuration: Configuration;
  /** Answers guard/confirm; set by the part that asks people. */
  confirm: ((connection: Connection) => void) | undefined;

  constructor(readonly extension: vscode.ExtensionContext) {
    this.service = new Service({
      locate: () => this.program(),
      launch,
      args: () => serviceArguments(settings().get("serviceArguments")),
      initialize: () => ({
        processId: process.pid,
        clientInfo: { name: vscode.env.appName, version: vscode.version },
        capabilities: {
          guardConfirm: true,
          processOutput: true,
          executionEvents: false,
          progress: true,
          previewMaxBytes,
        },
      }),
      listen: (connection) => this.listen(connection),
      log: (line) => this.log.info(line),
    });
    this.sessions = new Sessions(this.service, extension.workspaceState, openFolders);
    this.processes = new Processes(this.service, this.sessions);
    this.artifacts = new Artifacts(this.service);
    this.configuration = new Configuration(this.service);
  }

  /** The program of the service: it runs, whatever for, only in a workspace that is trusted. */
  async program(): Promise<Program> {
    this.checkTrust();
    return locate({
      configured: settings().get("path", ""),
      extension: this.extension.extensionPath,
      environment: process.env,
      platform: process.platform,
    });
  }

  /** The user's configuration file, which the service names, "" for none; it may not be there. */
  async configurationFile(): Promise<string> {
    const { server } = await this.service.ensure();
    return server.configPath ?? "";
  }

  private listen(connection: Connection): void {
    connection.onStderr((text) => this.log.append(text));
    this.sessions.listen(connection);
    this.processes.listen(connection);
    this.artifacts.listen(connection);
    this.configuration.listen(connection);
    this.confirm?.(connection);
  }

  /** A service runs programs that a workspace may choose: only where it is trusted. */
  private checkTrust(): void {
    if (!vscode.workspace.isTrusted) {
      throw new Untrusted();
    }
  }

  dispose(): void {
    this.sessions.dispose();
    this.processes.dispose();
    this.artifacts.dispose();
    this.configuration.dispose();
    this.service.dispose();
    this.log.dispose();
  }
}

/** Nothing starts in a workspace that its user does not trust. */
export class Untrusted extends Error {
  constructor() {
    super("Caisson starts nothing in a workspace that is not trusted.");
  }
}

/** The extension's settings. */
export function settings(): vscode.WorkspaceConfiguration {
  return vscode.workspace.getConfiguration("caisson");
}
