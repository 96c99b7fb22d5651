import type { PermissionMode } from "./initialize.js";

/** What a time is before it is known, in records. */
export const ZERO_TIME = "0001-01-01T00:00:00Z";

/** The size of a terminal, in character cells. */
export interface TTY {
  readonly cols: number;
  readonly rows: number;
}

/** Both lifecycles end with their adapter. */
export type Lifecycle = "session" | "managed";

/** `stopped`: its wait returned, whatever the exit code. `failed`: it never ran, or was lost. */
export type ProcessStatus = "starting" | "running" | "stopping" | "stopped" | "failed";

/** The durable record of one background process. */
export interface Process {
  readonly id: string;
  /** That of the start; records of processes that a tool began have none. */
  readonly operation_id?: string;
  readonly owner_kind: "main_agent" | "subagent";
  readonly owner_id: string;
  /** Equals the session. */
  readonly root_thread_id: string;
  readonly lifecycle: Lifecycle;
  readonly status: ProcessStatus;
  readonly pid: number;
  readonly pgid: number;
  readonly tty?: TTY;
  readonly command: string;
  readonly cwd: string;
  /** RFC 3339, as are the two below. */
  readonly started_at: string;
  readonly updated_at: string;
  /** {@link ZERO_TIME} while it runs. */
  readonly stopped_at: string;
  /** −1 until it is known, and for a process that a signal ended. */
  readonly exit_code: number;
  readonly last_error?: string;
  readonly sandbox_mode?: PermissionMode;
  readonly sandbox_denied?: boolean;
  /** `natural_exit`, `requested_stop`, or `lost` for a record whose process cannot be found. */
  readonly terminal_cause?: string;
  readonly completion_mode?: string;
  /** The offset of the oldest output byte that is kept. */
  readonly log_base_offset?: number;
  /** The members below need `caisson.process.v1`. */
  readonly argv?: readonly string[];
  /** The name of the signal that ended it, such as `SIGKILL`. */
  readonly signal?: string;
  /** The last output byte is in. */
  readonly output_closed?: boolean;
  /** Counts all output bytes ever written. */
  readonly total_bytes?: number;
  readonly label?: string;
  /** `side_chat` for the process of a side chat (`caisson.actors.v1`). */
  readonly actor_kind?: "side_chat";
}

/** One change of one process, as it stands on the wire. */
export interface ProcessEvent {
  readonly Type: "started" | "updated" | "failed" | "stopped" | "cleaned_up" | "recheck_due";
  readonly Cause?: "" | "natural_exit" | "requested_stop";
  readonly Process: Process;
}

/** The data of `process/start`. Exactly one of `command`, a shell line, and `argv` is set. */
export interface ProcessStart {
  /** Names the start. The reply and the durable records must carry it. */
  readonly operation_id: string;
  readonly command?: string;
  readonly argv?: readonly string[];
  /** The root when left out, and never outside of it. */
  readonly cwd?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly tty?: TTY;
  readonly actor: string;
  readonly actor_kind?: "side_chat";
  readonly permission_mode?: PermissionMode;
  readonly lifecycle?: Lifecycle;
  readonly label?: string;
}

/** The data of all other `process/*` requests, with what the method needs. */
export interface ProcessRequest {
  readonly id?: string;
  /** For `process/write`; with `caisson.bulk.v1` the bytes may be the body instead. */
  readonly input?: string;
  readonly cols?: number;
  readonly rows?: number;
  readonly options?: ReadOptions | null;
  readonly minutes?: number;
  readonly consumer?: string;
  readonly mode?: string;
  /** For `process/signal`, such as `SIGINT`. */
  readonly signal?: string;
}

/** Which output `process/read` is about. */
export interface ReadOptions {
  /** At most how many bytes to return; 0 means 32768. */
  readonly MaxBytes: number;
  /** Reads forward from this offset; without one, the tail, at once. */
  readonly OffsetBytes?: number | null;
  /** How long to wait for output at the offset, in nanoseconds. */
  readonly Wait: number;
  /** How long to gather more once some has come, in nanoseconds. */
  readonly MinDwell: number;
  /** Asks for base64; answer it by the same member in the reply (`caisson.bulk.v1`). */
  readonly Encoding?: "base64";
}

/** The reply to `process/read`. */
export interface ProcessRead {
  readonly Process: Process;
  /** Text, where what is no UTF-8 is U+FFFD; or empty when the bytes are the body. */
  readonly Output: string;
  readonly Encoding?: "base64";
  /** Offsets count all bytes ever written. */
  readonly StartOffset: number;
  readonly EndOffset: number;
  readonly TotalBytes: number;
  /** Older output than what is returned was asked for and is not kept any more. */
  readonly Truncated: boolean;
  /** No output came within `Wait`. */
  readonly TimedOut: boolean;
  /** How long the read waited, in nanoseconds. */
  readonly Duration: number;
}

/** The reply to `process/cleanup`. */
export interface ProcessCleanup {
  readonly Cleaned: readonly Process[];
}
