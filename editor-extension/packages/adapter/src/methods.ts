import type { RawJSON } from "./json.js";
import type { RunCode, RunCodeResult } from "./types/code.js";
import type { Directory, FileInfo, FilePath, FileRange } from "./types/files.js";
import type { Initialize, Initialized } from "./types/initialize.js";
import type { Job, JobDone } from "./types/job.js";
import type {
  Process,
  ProcessCleanup,
  ProcessEvent,
  ProcessRead,
  ProcessRequest,
  ProcessStart,
} from "./types/process.js";
import type {
  Execute,
  Export,
  ExportData,
  ExportRead,
  ToolCall,
  ToolList,
  ToolResult,
} from "./types/tools.js";

/** Every method beside `initialize`: the data of its request and of its reply. */
export interface MethodTable {
  execute: { data: Execute; reply: ToolResult };
  run_code: { data: RunCode; reply: RunCodeResult };
  "process/start": { data: ProcessStart; reply: Process };
  "process/list": { data: ProcessRequest; reply: readonly Process[] };
  "process/get": { data: ProcessRequest; reply: Process };
  "process/read": { data: ProcessRequest; reply: ProcessRead };
  "process/write": { data: ProcessRequest; reply: Process };
  "process/close_stdin": { data: ProcessRequest; reply: Process };
  "process/resize": { data: ProcessRequest; reply: Process };
  "process/signal": { data: ProcessRequest; reply: Process };
  "process/stop": { data: ProcessRequest; reply: Process };
  "process/input_available": { data: ProcessRequest; reply: boolean };
  "process/completion_pending": { data: ProcessRequest; reply: boolean };
  "process/completion_delivered": { data: ProcessRequest; reply: Process };
  "process/completion_mode": { data: ProcessRequest; reply: Process };
  "process/recheck": { data: ProcessRequest; reply: Process };
  "process/recheck_delivered": { data: ProcessRequest; reply: Process };
  "process/cleanup": { data: ProcessRequest; reply: ProcessCleanup };
  "export/read": { data: ExportRead; reply: ExportData };
  "export/close": { data: Export; reply: Readonly<Record<string, never>> };
  "export/stream": { data: Export; reply: null };
  "fs/stat": { data: FilePath; reply: FileInfo };
  "fs/read_directory": { data: FilePath; reply: Directory };
  "fs/read_file": { data: FileRange; reply: null };
  "fs/write_file": { data: FilePath; reply: FileInfo };
  "job/run": { data: Job; reply: JobDone };
  "tools/list": { data: Readonly<Record<string, never>>; reply: ToolList };
  shutdown: {
    data: { readonly remove: boolean };
    reply: Readonly<Record<string, never>> | null;
  };
}

/** The name of a method beside `initialize`. */
export type Method = keyof MethodTable;

/** Bytes that belong to a reply and travel beside it (`caisson.bulk.v1`). */
export interface Body {
  /** In bytes; exactly so many must come. */
  readonly size: number;
  /** Taken piece by piece as the host takes them, so that nothing large is in memory whole. */
  readonly content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

/** A reply with a body; only for a host that announced `caisson.bulk.v1`. */
export class WithBody<T> {
  readonly data: T;
  readonly body: Body;

  /** The body is bytes in memory, or a stream of exactly `size` bytes. */
  constructor(data: T, body: Uint8Array | Body) {
    this.data = data;
    this.body = body instanceof Uint8Array ? { size: body.length, content: [body] } : body;
  }
}

/** What every handler gets beside the request's data. */
export interface Context {
  /** The request's id, unique among those that run. */
  readonly id: string;
  /**
   * Aborts when the request is cancelled, and when the connection ends. The reply
   * is sent when the handler has ended, and not before: end soon, within 35 s.
   */
  readonly signal: AbortSignal;
  /**
   * Aborts when the adapter ends, after every handler has: for processes that were
   * admitted and outlive the request that started them.
   */
  readonly lifetime: AbortSignal;
  /** The binding as it was accepted; in `initialize` the one that is asked for. */
  readonly binding: Initialize;
  /** What came beside the request, complete, at most 64 MiB; empty when nothing did. */
  readonly body: Uint8Array;
  /** Whether the host announced the capability at `initialize`. */
  hostHas(capability: string): boolean;
  /**
   * Sends a process event. It never waits: a host that lets 4096 pile up loses the
   * connection, and learns the rest from `process/list`. Events before initialize
   * has succeeded follow its reply.
   */
  emitProcess(event: ProcessEvent | RawJSON): void;
  /**
   * Calls a tool of the host, from inside of a `run_code` that is still running;
   * anywhere else it rejects with `unsupported`. It rejects with the host's error,
   * and when the request or `signal` aborts. What goes in raw comes back raw.
   */
  invokeTool<T extends ToolCall | RawJSON>(call: T, signal?: AbortSignal): Promise<Answer<T>>;
  /**
   * Ends the adapter at once, and makes `run` reject with the error: for when what
   * the adapter stands for is gone. Nothing more is written, so that the outcome of
   * what is in flight is unknown to the host, as it should be, and its next request
   * begins anew. Only the first call counts.
   */
  fail(error: Error): void;
}

/** What a tool of the host answers: raw for a raw call. */
export type Answer<T> = T extends RawJSON ? RawJSON : ToolResult;

/** Answers one method. What it throws becomes the reply's error. */
export type Handler<M extends Method> = (
  data: MethodTable[M]["data"],
  context: Context,
) => Reply<MethodTable[M]["reply"]> | Promise<Reply<MethodTable[M]["reply"]>>;

/** What a handler answers: the data of the reply, decoded or raw, with a body or without. */
export type Reply<T> = T | RawJSON | WithBody<T | RawJSON>;

/** Handlers by the method that they answer. */
export type Handlers = { readonly [M in Method]?: Handler<M> };

/** An execution environment: what `run` serves. */
export interface Backend {
  /**
   * Called once, with a binding that the kit has checked. What it throws ends the
   * connection's use. Nothing else is called before it has succeeded.
   */
  initialize(binding: Initialize, context: Context): Initialized | Promise<Initialized>;
  /** The methods that the adapter answers; any other one is an error. */
  readonly methods?: Handlers;
  /**
   * Answers every method that is not in `methods`, whether this kit knows it or
   * not: with what the reply's data is, raw or not, or a {@link WithBody} of that.
   * A `delegate` has one; wrap it to see everything that passes.
   */
  forward?(method: string, data: RawJSON, context: Context): Promise<unknown>;
  /**
   * Called once, when every handler has ended and `lifetime` has aborted: stop and
   * reap every process, release everything. What it throws is returned by
   * `run`. It is not called when `initialize` never was, and it is called when
   * that failed. `signal` aborts when the budget of the shutdown is spent.
   */
  close?(signal: AbortSignal): void | Promise<void>;
}
