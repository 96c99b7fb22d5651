/** Permission modes: what a command may write. The empty string means `standard`. */
export type PermissionMode = "" | "read_only" | "standard" | "unconfined";

/** Capabilities that the host knows. Others may be announced, and are ignored. */
export type Capability =
  | "process.start.v1"
  | "caisson.bulk.v1"
  | "caisson.errors.v1"
  | "caisson.process.v1"
  | "caisson.fs.v1"
  | "caisson.limits.v1"
  | "caisson.actors.v1"
  | "caisson.job.v1"
  | "caisson.tools.v1"
  | "caisson.shutdown.v1"
  | "caisson.socket.v2";

/**
 * The data of `initialize`. All of it but `capabilities` and `socket` is
 * the binding: it never changes once it was accepted. The kit answers a repeated
 * one by itself and refuses a different one; leaving `environment` out means "as
 * first given", and `require_existing_workspace` may change, since a host that
 * comes back requires what it once had.
 */
export interface Initialize {
  readonly version: number;
  /** The absolute path of the workspace. */
  readonly root: string;
  /** The session's id: one path component of at most 255 bytes. */
  readonly session: string;
  /** The identity of the environment: one path component of at most 255 bytes. */
  readonly identity?: string;
  /** Variables for commands. They are secret: keep them out of argv and logs. */
  readonly environment?: Readonly<Record<string, string>>;
  /** A missing root is an error; else it is made, mode 0700. */
  readonly require_existing_workspace?: boolean;
  /** The root goes when the adapter ends in order. */
  readonly remove_workspace_on_exit?: boolean;
  /** What the host understands. */
  readonly capabilities?: readonly string[];
  /** Where the host listens for its own worker, which an adapter is not. */
  readonly socket?: { readonly path: string; readonly nonce: string };
}

/** The reply to `initialize`; the kit adds `version`. */
export interface Initialized {
  /** The workspace with its symlinks resolved, absolute. */
  readonly root: string;
  /** What the adapter can do beyond `execute`. Announce only what is answered. */
  readonly capabilities?: readonly (Capability | (string & {}))[];
}
