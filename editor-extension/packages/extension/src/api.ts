import type {
  Artifact,
  Process,
  ProcessEventParams,
  Session,
  ToolCallResult,
} from "@caisson/protocol";
import type { CancellationToken, Disposable, Event, WorkspaceFolder } from "vscode";

/**
 * What other extensions get from `vscode.extensions.getExtension("caisson-dev.caisson")`
 * and its `activate()`. Every failure is an Error whose message a person can act on;
 * its `data` is the service's, with `kind` and `hint`.
 */
export interface CaissonApi {
  /** The version of this interface: it grows within one, and changes with another. */
  readonly version: 1;

  /**
   * Opens the session of a folder, or of the window's first one, with its
   * environment; the window's own session is used when there is one.
   */
  open(folder?: WorkspaceFolder, options?: OpenOptions): Promise<Session>;

  /** Runs one tool in a session's environment, as agents do. */
  call(
    session: Session | string,
    name: string,
    input: Record<string, unknown>,
    options?: CallOptions,
  ): Promise<ToolCallResult>;

  /** Starts a background process in a session's environment. */
  start(session: Session | string, command: string, options?: StartOptions): Promise<Process>;

  /** Fires with each change of a process. */
  readonly onProcess: Event<ProcessEventParams>;

  /** Fires with each artifact that is published. */
  readonly onArtifact: Event<Artifact>;
}

export interface OpenOptions {
  /** A profile's name: a new session is opened on it, which the folder uses then. */
  profile?: string;
  token?: CancellationToken;
}

export interface CallOptions {
  /** Who calls; missing is the main agent. */
  actor?: { id: string; kind: "main" | "subagent" | "side_chat" };
  permissionMode?: "read_only" | "standard" | "unconfined";
  token?: CancellationToken;
}

export interface StartOptions {
  label?: string;
  cwd?: string;
  env?: Record<string, string>;
  /** Gives the process a terminal of this size. */
  tty?: { cols: number; rows: number };
}

export type { Artifact, Disposable, Process, ProcessEventParams, Session, ToolCallResult };
