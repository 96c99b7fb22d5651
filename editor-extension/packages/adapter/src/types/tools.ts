import type { PermissionMode } from "./initialize.js";

/** One call of a tool. */
export interface ToolCall {
  /** Names the call for people. */
  readonly id?: string;
  /** The tool's name; one that is unknown is an error. */
  readonly name: string;
  /** The text of one JSON object. */
  readonly arguments: string;
}

/** The data of `execute`. */
export interface Execute {
  readonly call: ToolCall;
  /** Who calls; never empty, and equal to the session for its main agent. */
  readonly actor: string;
  /** `side_chat` for a side chat, which is always `read_only` (`caisson.actors.v1`). */
  readonly actor_kind?: "side_chat";
  readonly permission_mode?: PermissionMode;
  readonly git_attribution_enabled?: boolean;
  /** At most how many bytes of output a command returns; 0 is the adapter's own limit (`caisson.limits.v1`). */
  readonly max_output_bytes?: number;
}

/** The types of parts. */
export type PartType = "text" | "image" | "audio" | "file" | "resource" | "resource_link";

/** One piece of a result's content. */
export interface Part {
  readonly type: PartType;
  readonly text?: string;
  /** Base64. */
  readonly data?: string;
  readonly mime_type?: string;
  readonly uri?: string;
  readonly name?: string;
  readonly artifact?: unknown;
}

/**
 * What a tool answers: at most 128 parts, 2 MiB of inline data and 3 MiB in all;
 * the kit refuses to send more. A command that exits with an error is a normal
 * result; a refusal is a thrown error or a result with `is_error`.
 */
export interface ToolResult {
  readonly content?: readonly Part[];
  /** The result as one object; the host makes a text part of it where there is none. */
  readonly structured_content?: unknown;
  readonly meta?: unknown;
  readonly is_error?: boolean;
}

/** What the text part of `present_artifact` holds, as JSON. */
export interface PresentedArtifact {
  /** Names an immutable copy of the file for `export/*`. */
  readonly execution_export: string;
  /** The base name. */
  readonly name: string;
  /** In bytes, at most 256 MiB. */
  readonly size: number;
}

/** The data of `export/close` and `export/stream`. */
export interface Export {
  readonly token: string;
}

/** The data of `export/read`. */
export interface ExportRead {
  readonly token: string;
  /** In bytes from the beginning of the export. */
  readonly offset: number;
}

/** The reply to `export/read`: at most 256 KiB, and never empty before the end. */
export interface ExportData {
  /** Base64. */
  readonly data: string;
  readonly eof: boolean;
}

/** The description of a tool, in the reply to `tools/list`. */
export interface ToolDescription {
  readonly name: string;
  readonly group?: string;
  readonly description: string;
  /** A JSON Schema. */
  readonly input_schema: unknown;
  readonly annotations?: { readonly read_only?: boolean; readonly destructive?: boolean };
}

/** The reply to `tools/list`: the tools beyond the workspace set. */
export interface ToolList {
  readonly tools: readonly ToolDescription[];
}
