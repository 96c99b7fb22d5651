/** A scripted host: what the kit's and the examples' tests speak with an adapter. */
import { type ChildProcess, spawn } from "node:child_process";
import { PassThrough, type Readable, type Writable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Frame } from "../src/frame.js";
import type { Backend } from "../src/index.js";
import { type RunOptions, run } from "../src/index.js";
import { FrameReader } from "../src/reader.js";

setFlagsFromString("--expose-gc");
/** Collects the memory that nobody holds. */
export const collect = runInNewContext("gc") as () => void;

/** How long a test waits for what must come, perhaps from a program that starts, in milliseconds. */
const patience = 30_000;

export const token = "0123456789abcdef".repeat(4);

/** A frame as a test reads it. */
export interface Got {
  readonly id: string;
  readonly parentId: string;
  readonly method: string;
  readonly data: unknown;
  readonly error: string;
  readonly detail: unknown;
  readonly body: number;
  readonly raw: string;
}

/** The host's end of a connection to an adapter. */
export class Host {
  readonly input: Writable;
  readonly frames: Got[] = [];
  /** Settles with the adapter: its error, or undefined. */
  readonly done: Promise<Error | undefined>;
  ended = false;
  #waiting: (() => void)[] = [];
  #reader = new FrameReader((frame) => this.#take(frame), { quote: true });

  constructor(input: Writable, output: Readable, done: Promise<Error | undefined>) {
    this.input = input;
    this.#reader.enableBulk();
    output.on("data", (piece: Buffer) => this.#reader.push(piece));
    output.on("close", () => {
      this.ended = true;
      this.#wake();
    });
    output.on("error", () => undefined);
    input.on("error", () => undefined);
    this.done = done;
  }

  /** Serves the backend in this process. */
  static serve(backend: Backend, options: RunOptions = {}): Host {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const done = run(backend, { input, output, ...options }).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
    );
    return new Host(input, output, done);
  }

  /** Starts an adapter as a program. */
  static start(
    command: readonly string[],
    env?: NodeJS.ProcessEnv,
  ): Host & { child: ChildProcess } {
    const [program = "", ...args] = command;
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], ...(env && { env }) });
    let stderr = "";
    child.stderr.on("data", (piece: Buffer) => {
      stderr += piece.toString("utf8");
    });
    const done = new Promise<Error | undefined>((resolve) => {
      child.once("close", (code, signal) =>
        resolve(code === 0 ? undefined : new Error(`exit ${code ?? signal}: ${stderr}`)),
      );
    });
    return Object.assign(new Host(child.stdin, child.stdout, done), { child });
  }

  /** Writes a frame, with the token. */
  send(frame: object, raw?: Uint8Array): void {
    this.line(JSON.stringify({ token, ...frame }));
    if (raw !== undefined) this.input.write(raw);
  }

  /** Writes a line, whatever it is. */
  line(line: string | Buffer): void {
    this.input.write(Buffer.concat([Buffer.from(line), Buffer.from("\n")]));
  }

  /** Waits for the first frame that matches. */
  async next(matches: (frame: Got) => boolean, what = "a frame"): Promise<Got> {
    const until = Date.now() + patience;
    for (;;) {
      const found = this.frames.find(matches);
      if (found !== undefined) return found;
      if (this.ended || Date.now() > until) {
        throw new Error(
          `${what} did not come; there were ${JSON.stringify(this.frames).slice(0, 2000)}`,
        );
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, patience);
        this.#waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Waits for the reply with the id. */
  reply(id: string): Promise<Got> {
    return this.next((f) => f.id === id && f.method === "", `the reply ${id}`);
  }

  /** Sends a request and waits for its reply. */
  call(id: string, method: string, data: unknown, more: object = {}): Promise<Got> {
    this.send({ id, method, data, ...more });
    return this.reply(id);
  }

  /** Calls a tool and returns its structured content, or throws its error. */
  async tool(id: string, name: string, args: object, mode = ""): Promise<Record<string, unknown>> {
    const call = { name, arguments: JSON.stringify(args) };
    const got = await this.call(id, "execute", { call, actor: "s", permission_mode: mode });
    if (got.error !== "") throw new Error(got.error);
    const result = got.data as {
      structured_content?: Record<string, unknown>;
      content?: unknown[];
    };
    return result.structured_content ?? { content: result.content };
  }

  /** Initializes with the usual binding. */
  initialize(root: string, more: object = {}): Promise<Got> {
    const capabilities = ["caisson.bulk.v1", "caisson.errors.v1"];
    return this.call("init", "initialize", {
      version: 4,
      root,
      session: "s",
      capabilities,
      ...more,
    });
  }

  /** Ends the input and waits for the adapter's end. */
  async end(): Promise<Error | undefined> {
    this.input.end();
    return this.done;
  }

  #take(frame: Frame): void {
    const { id, parentId, method, error, detail, body } = frame;
    const raw = Buffer.from(frame.raw).toString("utf8");
    this.frames.push({ id, parentId, method, error, detail, body, raw, data: frame.data?.parse() });
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
