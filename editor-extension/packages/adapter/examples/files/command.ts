import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { AdapterError, type PermissionMode } from "@caisson/adapter";
import { signalGroup } from "./identity.js";

/** How much of each stream is returned, in bytes; the rest is counted as cut. */
const maxOutput = 512 * 1024;

/** How long output may still come after a command has ended, in milliseconds. */
const drain = 100;

/** How a foreground command went, as `bash` and `git` answer it. */
export interface CommandResult {
  readonly command: string;
  readonly exit_code: number;
  readonly signal?: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly stdout_truncated: boolean;
  readonly stderr_truncated: boolean;
  readonly duration_ms: number;
  readonly timed_out: boolean;
  /** The background process that it has become. */
  readonly promoted_process_id?: string;
}

/** Refuses a command that would have to be confined. */
export function mustBeUnconfined(mode: PermissionMode | undefined): void {
  if (mode === "unconfined") return;
  const asked = mode === undefined || mode === "" ? "standard" : mode;
  throw new AdapterError(
    "unsupported",
    `this adapter cannot confine commands, as ${asked} asks for`,
    {
      hint: "let the profile's permission_mode and max_permission_mode be unconfined, or use another backend",
    },
  );
}

/** A command that takes longer than its call. */
export interface Overdue {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  readonly exit: Promise<Exit>;
  /** What it has printed so far. */
  readonly output: Buffer;
}

/** The exit code or the signal. */
export type Exit = readonly [number | null, NodeJS.Signals | null];

/** What to run. */
export interface Command {
  readonly argv: readonly string[];
  /** The command as the result names it. */
  readonly shown: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Milliseconds. */
  readonly timeout: number;
  /** Takes over a command whose time is up, and names the process that it now is. */
  readonly adopt: (overdue: Overdue) => Promise<string>;
}

/**
 * Runs a command to its end, and returns when it has itself ended, whoever still
 * holds its pipes. One that is cancelled is killed with its group; one that takes
 * longer than its timeout goes on as a background process.
 */
export async function runCommand(command: Command, signal: AbortSignal): Promise<CommandResult> {
  signal.throwIfAborted(); // an abort that was before is told to no listener
  const [program = "", ...args] = command.argv;
  const began = performance.now();
  const child = spawn(program, args, {
    cwd: command.cwd,
    env: command.env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const exit = new Promise<Exit>((resolve, reject) => {
    child.once("exit", (...how) => resolve(how));
    child.once("error", (cause) =>
      reject(
        new AdapterError("unsupported", `${program} cannot be started: ${cause.message}`, {
          cause,
        }),
      ),
    );
  });
  const [stdout, stderr] = [new Head(child.stdout), new Head(child.stderr)];
  const kill = (): void => {
    if (child.pid !== undefined) signalGroup(child.pid, "SIGKILL");
  };
  signal.addEventListener("abort", kill);
  const timer = new AbortController();
  try {
    const timeout = sleep(command.timeout, undefined, { signal: timer.signal }).catch(
      () => undefined,
    );
    const how = await Promise.race([exit, timeout]);
    signal.throwIfAborted();
    let adopted: string | undefined;
    if (how === undefined) {
      const output = Buffer.concat([stdout.stop(), stderr.stop()]);
      adopted = await command.adopt({ child, exit, output });
    } else {
      await Promise.race([Promise.all([stdout.closed, stderr.closed]), sleep(drain)]);
      child.stdout.destroy();
      child.stderr.destroy();
    }
    const [code, ended] = how ?? [null, null];
    return {
      command: command.shown,
      exit_code: code ?? -1,
      ...(ended !== null && { signal: ended }),
      stdout: stdout.text,
      stderr: stderr.text,
      stdout_truncated: stdout.truncated,
      stderr_truncated: stderr.truncated,
      duration_ms: Math.round(performance.now() - began),
      timed_out: how === undefined,
      ...(adopted !== undefined && { promoted_process_id: adopted }),
    };
  } finally {
    timer.abort();
    signal.removeEventListener("abort", kill);
  }
}

/** The head of a stream; what comes after it is dropped. */
class Head {
  readonly #stream: Readable;
  readonly #pieces: Buffer[] = [];
  readonly closed: Promise<void>;
  #length = 0;
  truncated = false;

  constructor(stream: Readable) {
    this.#stream = stream;
    this.closed = new Promise((resolve) => stream.once("close", resolve));
    stream.on("data", this.#add);
  }

  /** Leaves the rest of the stream to somebody else, and returns its head. */
  stop(): Buffer {
    this.#stream.off("data", this.#add);
    this.#stream.pause();
    return Buffer.concat(this.#pieces);
  }

  get text(): string {
    return Buffer.concat(this.#pieces).toString("utf8");
  }

  readonly #add = (piece: Buffer): void => {
    const room = maxOutput - this.#length;
    if (piece.length > room) this.truncated = true;
    if (room <= 0) return;
    this.#pieces.push(piece.subarray(0, room));
    this.#length += Math.min(room, piece.length);
  };
}
