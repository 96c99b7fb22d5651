import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  AdapterError,
  type Context,
  type Process,
  type ProcessEvent,
  type ProcessRead,
  type ProcessStart,
  type ReadOptions,
  ZERO_TIME,
} from "@caisson/adapter";
import type { Exit, Overdue } from "./command.js";
import { groupRuns, identity, signalGroup } from "./identity.js";

/** How long each of SIGTERM and SIGKILL may take, in milliseconds. */
const patience = 2000;

/** How often a read that waits looks at the output, in milliseconds. */
const glance = 20;

/** The most that one read returns, in bytes. */
const maxRead = 1024 * 1024;

/** The shell that runs command lines. */
export const shell = "/bin/sh";

/** What is started: by the host, which names the operation, or by a tool. */
export type Start = Omit<ProcessStart, "operation_id"> & { readonly operation_id?: string };

/** A record and what recognises its process; both are on disk. */
interface Kept {
  record: Process;
  readonly identity?: string | undefined;
}

/** A process that this adapter started and has not reaped. */
interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
  stopping: boolean;
}

/** What the registry needs of the session. */
export interface Session {
  /** A directory of the session's own, for records and output. */
  readonly directory: string;
  readonly id: string;
  /** All variables of commands: none is the adapter's. */
  readonly environment: Readonly<Record<string, string>>;
  readonly emit: (event: ProcessEvent) => void;
}

/**
 * The background processes of a session: real ones, each in a group of its own,
 * which write to a file themselves so that nobody slows them down. Records and
 * output stay on disk until they are cleaned up.
 */
export class Registry {
  readonly #session: Session;
  readonly #kept = new Map<string, Kept>();
  readonly #running = new Map<string, Running>();

  private constructor(session: Session) {
    this.#session = session;
  }

  /**
   * Opens the registry. Processes that an adapter left behind which was killed are
   * ended, as they would have been by it, and reported lost.
   */
  static async open(session: Session): Promise<Registry> {
    const registry = new Registry(session);
    await mkdir(session.directory, { recursive: true, mode: 0o700 });
    for (const name of await readdir(session.directory)) {
      if (!name.endsWith(".json")) continue;
      const kept: Kept = JSON.parse(await readFile(join(session.directory, name), "utf8"));
      registry.#kept.set(kept.record.id, kept);
      if (!isOver(kept.record)) await registry.#lose(kept);
    }
    return registry;
  }

  /** Starts a process that outlives its request; it ends with the adapter. */
  async start(start: Start, cwd: string, context: Context): Promise<Process> {
    if (start.tty !== undefined)
      throw new AdapterError("unsupported", "there are no terminals here");
    const argv = start.command === undefined ? start.argv : [shell, "-c", start.command];
    const [program, ...args] = argv ?? [];
    if (program === undefined)
      throw new AdapterError("invalidParams", "process/start without a command");
    const id = newId();
    const output = await open(this.#output(id), "ax", 0o600);
    try {
      const child = spawn(program, args, {
        cwd,
        env: { ...this.#session.environment, ...start.environment },
        stdio: ["pipe", output.fd, output.fd],
        detached: true,
      });
      child.stdin?.on("error", () => undefined); // whoever writes is told by the write
      await began(child, program);
      const exit = new Promise<Exit>((resolve) => child.once("exit", (...how) => resolve(how)));
      return await this.#admit(id, { child, exit }, start, cwd, context);
    } finally {
      await output.close(); // the process has its own
    }
  }

  /** Makes a background process of a command that goes on, with its output so far. */
  async adopt(overdue: Overdue, start: Start, cwd: string, context: Context): Promise<Process> {
    const id = newId();
    await writeFile(this.#output(id), overdue.output, { mode: 0o600 });
    const output = createWriteStream(this.#output(id), { flags: "a" });
    output.on("error", (error) => console.error(`the output of ${id} is not kept:`, error));
    const { stdout, stderr } = overdue.child;
    const closed = [stdout, stderr].map(
      (stream) => new Promise((end) => stream.once("close", end)),
    );
    void Promise.all(closed).then(() => output.end());
    for (const stream of [stdout, stderr]) stream.pipe(output, { end: false });
    return this.#admit(id, overdue, start, cwd, context);
  }

  /** Keeps the record of a process that runs, and watches its end. */
  async #admit(
    id: string,
    { child, exit }: { child: ChildProcess; exit: Promise<Exit> },
    start: Start,
    cwd: string,
    context: Context,
  ): Promise<Process> {
    const now = new Date().toISOString();
    const pid = child.pid ?? 0;
    const record: Process = {
      id,
      ...(start.operation_id !== undefined && { operation_id: start.operation_id }),
      owner_kind: start.actor === this.#session.id ? "main_agent" : "subagent",
      owner_id: start.actor,
      root_thread_id: this.#session.id,
      lifecycle: start.lifecycle ?? "session",
      status: "running",
      pid,
      pgid: pid,
      command: start.command ?? (start.argv ?? []).join(" "),
      cwd,
      started_at: now,
      updated_at: now,
      stopped_at: ZERO_TIME,
      exit_code: -1,
      sandbox_mode: "unconfined",
    };
    await this.#keep({ record, identity: await identity(pid) });
    this.#emit("started", record);
    const ended = exit
      .then(([code, signal]) => this.#ended(id, code, signal))
      .catch((error: unknown) => console.error(`the end of ${id} is not on disk:`, error));
    this.#running.set(id, { child, ended, stopping: false });
    const end = (): void => void this.stop(id).catch(() => undefined); // close tells
    context.lifetime.addEventListener("abort", end, { once: true });
    return record;
  }

  list(): Process[] {
    return [...this.#kept.values()].map(({ record }) => record);
  }

  get(id: string): Process {
    const kept = this.#kept.get(id);
    if (kept === undefined) throw new AdapterError("processNotFound", `there is no process ${id}`);
    return kept.record;
  }

  /** Reads from an offset on, waiting for output there, or else the tail at once. */
  async read(id: string, options: ReadOptions, signal: AbortSignal): Promise<ProcessRead> {
    const began = performance.now();
    const until = began + options.Wait / 1e6;
    const asked = options.OffsetBytes ?? undefined;
    let total = await this.#total(id);
    let timedOut = false;
    while (asked !== undefined && total <= asked && !isOver(this.get(id))) {
      timedOut = performance.now() >= until;
      if (timedOut) break;
      await sleep(glance, undefined, { signal });
      total = await this.#total(id);
    }
    if (asked !== undefined && !timedOut && options.MinDwell > 0) {
      await sleep(Math.min(options.MinDwell / 1e6, patience), undefined, { signal });
    }
    total = await this.#total(id);
    const most = Math.min(options.MaxBytes || 32768, maxRead);
    const start = Math.min(asked ?? Math.max(0, total - most), total);
    const bytes = await this.#bytes(id, start, Math.min(most, total - start));
    const end = start + bytes.length;
    return {
      Process: this.get(id),
      Output: bytes.toString("utf8"),
      StartOffset: start,
      EndOffset: end,
      TotalBytes: total,
      Truncated: asked === undefined && start > 0,
      TimedOut: timedOut,
      Duration: Math.round((performance.now() - began) * 1e6),
    };
  }

  async write(id: string, input: string): Promise<Process> {
    const record = this.get(id);
    const stdin = this.#running.get(id)?.child.stdin;
    const closed = (cause?: Error): AdapterError =>
      new AdapterError("invalidParams", `the process ${id} takes no input any more`, { cause });
    if (stdin?.writable !== true) throw closed();
    await new Promise<void>((resolve, reject) => {
      // A process that ends meanwhile, or closes its input, is no fault of the adapter's.
      stdin.write(input, (error) => (error ? reject(closed(error)) : resolve()));
    });
    return record;
  }

  /** Ends a process with its group: SIGTERM, SIGKILL after 2 s, an error 2 s later. */
  async stop(id: string): Promise<Process> {
    const { pgid } = this.get(id);
    const running = this.#running.get(id);
    if (running === undefined) return this.get(id);
    running.stopping = true;
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      signalGroup(pgid, signal);
      const timer = new AbortController();
      const timeout = sleep(patience, "late", { signal: timer.signal }).catch(() => "late");
      const first = await Promise.race([running.ended.then(() => "ended"), timeout]);
      timer.abort();
      if (first === "late") continue;
      // As long as anybody is left in the group its number is nobody else's.
      const until = performance.now() + patience;
      while (signal === "SIGTERM" && (await groupRuns(pgid))) {
        if (performance.now() >= until) {
          signalGroup(pgid, "SIGKILL");
          break;
        }
        await sleep(glance);
      }
      return this.get(id);
    }
    throw new Error(`the process ${id} (pid ${pgid}) does not end`);
  }

  /** Forgets the processes that have ended, with their output. */
  async cleanup(): Promise<Process[]> {
    const cleaned = this.list().filter(isOver);
    for (const record of cleaned) {
      this.#kept.delete(record.id);
      await rm(this.#record(record.id), { force: true });
      await rm(this.#output(record.id), { force: true });
      this.#emit("cleaned_up", record);
    }
    return cleaned;
  }

  /** Stops and reaps every process. */
  async close(): Promise<void> {
    const ends = await Promise.allSettled([...this.#running.keys()].map((id) => this.stop(id)));
    const failed = ends.flatMap((end) => (end.status === "rejected" ? [String(end.reason)] : []));
    if (failed.length > 0) throw new Error(failed.join("; "));
  }

  async #ended(id: string, code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    const running = this.#running.get(id);
    const kept = this.#kept.get(id);
    if (kept === undefined) return;
    const cause = running?.stopping === true ? "requested_stop" : "natural_exit";
    const now = new Date().toISOString();
    const record: Process = {
      ...kept.record,
      status: "stopped",
      exit_code: code ?? -1,
      terminal_cause: cause,
      updated_at: now,
      stopped_at: now,
      ...(signal !== null && { last_error: `ended by ${signal}` }),
    };
    this.#running.delete(id);
    this.#kept.set(id, { ...kept, record });
    await this.#keep({ ...kept, record });
    this.#emit("stopped", record, cause);
  }

  /** Settles the record of a process that an earlier adapter started. */
  async #lose(kept: Kept): Promise<void> {
    const { pid, pgid } = kept.record;
    if (kept.identity !== undefined && (await identity(pid)) === kept.identity) {
      signalGroup(pgid, "SIGKILL");
    }
    const now = new Date().toISOString();
    const record: Process = {
      ...kept.record,
      status: "failed",
      terminal_cause: "lost",
      last_error: "its adapter was ended from outside",
      updated_at: now,
      stopped_at: now,
    };
    await this.#keep({ ...kept, record });
    this.#emit("failed", record);
  }

  /** Writes a record in place of the earlier one. */
  async #keep(kept: Kept): Promise<void> {
    const path = this.#record(kept.record.id);
    await writeFile(`${path}.new`, JSON.stringify(kept), { mode: 0o600 });
    await rename(`${path}.new`, path);
    this.#kept.set(kept.record.id, kept);
  }

  #emit(type: ProcessEvent["Type"], record: Process, cause: ProcessEvent["Cause"] = ""): void {
    this.#session.emit({ Type: type, Cause: cause, Process: record });
  }

  #record(id: string): string {
    return join(this.#session.directory, `${id}.json`);
  }

  #output(id: string): string {
    return join(this.#session.directory, `${id}.output`);
  }

  async #total(id: string): Promise<number> {
    this.get(id); // an id of the host is no path before it is known
    return (await stat(this.#output(id))).size;
  }

  async #bytes(id: string, start: number, length: number): Promise<Buffer> {
    const file = await open(this.#output(id), "r");
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, start);
      return wholeCharacters(buffer.subarray(0, bytesRead));
    } finally {
      await file.close();
    }
  }
}

/** Waits until the program runs, or throws why it does not. */
async function began(child: ChildProcess, program: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (cause) =>
      reject(
        new AdapterError("invalidParams", `${program} cannot be started: ${cause.message}`, {
          cause,
        }),
      ),
    );
  });
}

function newId(): string {
  return `p-${randomBytes(10).toString("hex")}`;
}

/** Whether the process will never run again. */
export function isOver(record: Process): boolean {
  return record.status === "stopped" || record.status === "failed";
}

/** Leaves out a character at the end that has only begun; the next read has it whole. */
function wholeCharacters(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length - 1); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) break;
    if (byte < 0xc0) continue;
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return needs > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}
