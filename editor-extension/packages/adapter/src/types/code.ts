import type { PermissionMode } from "./initialize.js";

/** A tool that a program may call. */
export interface ProgramTool {
  readonly name: string;
  readonly description: string;
  /** A JSON Schema. */
  readonly input_schema?: unknown;
}

/** The data of `run_code`. */
export interface RunCode {
  readonly program: {
    readonly code: string;
    readonly tools: readonly ProgramTool[];
    /** What a program sees of a tool result; others are refused. The default is `content`. */
    readonly result_view?: "content" | "structured";
  };
  /** Milliseconds; 0 is none. */
  readonly timeout_ms: number;
  readonly actor: string;
  readonly permission_mode?: PermissionMode;
}

/** The reply to `run_code`. A program that fails or times out says so in `Error`. */
export interface RunCodeResult {
  readonly Logs: readonly string[];
  readonly Value?: unknown;
  readonly Error?: string;
  readonly Media?: unknown;
  readonly CallSummary?: unknown;
}
