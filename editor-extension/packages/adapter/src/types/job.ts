import type { PermissionMode } from "./initialize.js";

/**
 * The data of `job/run` (`caisson.job.v1`, which needs `caisson.bulk.v1`). What the
 * files of the job hold is the request's body, one after another: the script, what
 * the program reads from its standard input, and the inputs in their order.
 */
export interface Job {
  readonly id?: string;
  /** The program and its arguments; or `script` stands. */
  readonly argv?: readonly string[];
  readonly script?: JobScript;
  readonly stdin_bytes?: number;
  readonly inputs?: readonly JobInput[];
  /**
   * A directory of the workspace, in which nothing is removed and only what
   * `collect` names comes back; without it the job has a fresh one.
   */
  readonly cwd?: string;
  /** Variables beside those of the session. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The session itself is its main agent. */
  readonly actor: string;
  readonly actor_kind?: "side_chat";
  readonly permission_mode?: PermissionMode;
  /** Limits; 0 and missing are none beside the adapter's own. */
  readonly timeout_ms?: number;
  /** Of each process. */
  readonly cpu_time_ms?: number;
  /** Of each process. */
  readonly memory_bytes?: number;
  /** Of stdout and stderr together. */
  readonly max_output_bytes?: number;
  /** Globs of what comes back; none is everything that is in a fresh directory. */
  readonly collect?: readonly string[];
}

/** A program text, and what gets the name of its file. */
export interface JobScript {
  readonly interpreter: string;
  /** How many bytes of the body it is. */
  readonly bytes: number;
}

/** One input file. */
export interface JobInput {
  /** Relative, with slashes. Check that it stays inside. */
  readonly path: string;
  /** How many bytes of the body it has. */
  readonly bytes: number;
}

/**
 * The reply to `job/run`: a `WithBody` whose body is standard output and then
 * standard error. Nothing of the job runs any more when it is sent.
 */
export interface JobDone {
  /** How many bytes of the body are standard output. */
  readonly stdout_bytes: number;
  /** -1 where a signal ended the program. */
  readonly exit_code: number;
  readonly signal?: string;
  readonly timed_out?: boolean;
  readonly truncated?: boolean;
  /** Exports: the host streams and closes each. */
  readonly files?: readonly JobFile[];
  /** How many files were not collected. */
  readonly files_dropped?: number;
  readonly fuel_remaining?: number;
}

/** One file that a job left. */
export interface JobFile {
  readonly path: string;
  /** In bytes. */
  readonly size: number;
  readonly token: string;
}
