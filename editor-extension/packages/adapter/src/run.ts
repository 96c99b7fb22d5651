import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import type { Readable, Writable } from "node:stream";
import { aborter, Deferred } from "./body.js";
import { AdapterError } from "./errors.js";
import { FLUSH_GRACE_MS, MAX_TIMEOUT_MS, SHUTDOWN_TIMEOUT_MS } from "./limits.js";
import type { Backend } from "./methods.js";
import { FrameReader } from "./reader.js";
import { Server } from "./server.js";
import { FrameWriter } from "./writer.js";

/** Choices of {@link run}. */
export interface RunOptions {
  /** Where the host's frames come from; the process's standard input when left out. */
  readonly input?: Readable;
  /** Where replies go; the process's standard output when left out. */
  readonly output?: Writable;
  /** Ends the adapter in order when it aborts. */
  readonly signal?: AbortSignal;
  /**
   * How long the end may take, from the end of the input to the return of `run`,
   * in milliseconds from 1 to 2147483647; 60000 when left out, which is what a
   * service gives an adapter. It must be longer than what a delegate may take.
   */
  readonly shutdown_timeout_ms?: number;
}

/**
 * Serves one session of the backend, and returns when it is over and nothing of it
 * is left. The process must exit soon after: a timer of the backend that is still
 * there keeps Node from it.
 *
 * It ends when the input ends, when a write fails, when the input is malformed,
 * when `signal` aborts, when a `shutdown` was answered, and by
 * {@link Context.fail}. Then, in this order: every request is cancelled and its
 * handler waited for, `lifetime` aborts, the backend is closed, and the last
 * replies are written. A read or a write that is blocked holds none of it up.
 *
 * It rejects when anything but the end of the input, `signal` or a `shutdown` was
 * the reason, when the backend's `close` failed, and when the budget was spent:
 * then something may be left. On the process's own standard input and output,
 * SIGTERM, SIGINT and SIGHUP end it in order too, and when the host does not read
 * the last replies within a second the process exits with status 1: nothing else
 * lets go of a write that is blocked.
 */
export async function run(backend: Backend, options: RunOptions = {}): Promise<void> {
  const budget = options.shutdown_timeout_ms ?? SHUTDOWN_TIMEOUT_MS;
  if (!Number.isInteger(budget) || budget < 1 || budget > MAX_TIMEOUT_MS) {
    throw new RangeError(`shutdown_timeout_ms must be a whole number from 1 to ${MAX_TIMEOUT_MS}`);
  }
  const input = options.input ?? process.stdin;
  const output = options.output ?? process.stdout;
  const ended = new Deferred<Error | undefined>();
  const finish = (reason?: Error): void => ended.resolve(reason);
  const writer = new FrameWriter(output, (error) =>
    finish(new Error(`writing to the host failed: ${error.message}`, { cause: error })),
  );
  const reader = new FrameReader((frame) => server.take(frame));
  const fail = (error: Error): void => {
    finish(error);
    writer.fail(error);
    hangUp(output);
  };
  const server = new Server(backend, {
    writer,
    enableBulk: () => reader.enableBulk(),
    finish,
    fail,
  });
  const stopReading = read(input, reader, finish);
  const letGo = onSignals(options, finish);
  const reason = await ended.promise;
  stopReading();
  const errors = reason === undefined ? [] : [reason];
  const over = aborter();
  const timer = setTimeout(() => over.abort(), budget);
  try {
    await end(server, over.signal).catch((error: unknown) => {
      errors.push(error instanceof Error ? error : new Error(String(error)));
    });
    await flush(writer, output);
    letGoOf(output, errors);
  } finally {
    clearTimeout(timer);
    letGo();
  }
  const [first] = errors;
  if (errors.length > 1) throw new AggregateError(errors, errors.map((e) => e.message).join("; "));
  if (first !== undefined) throw first;
}

/**
 * Ends the output at once for whoever reads it. Node never closes the process's own,
 * whose reader would learn of nothing before the exit.
 */
function hangUp(output: Writable): void {
  const own = output === process.stdout && output.writableLength === 0;
  output.destroy();
  if (!own || process.platform === "win32") return;
  try {
    closeSync(1);
    openSync(devNull, "w"); // in its place, so that no file of the adapter's gets there
  } catch {
    // the exit ends it
  }
}

/** Reads frames until told to stop; what is no frame, and the end, finish the connection. */
function read(input: Readable, reader: FrameReader, finish: (reason?: Error) => void): () => void {
  const attempt = (step: () => void): void => {
    try {
      step();
    } catch (error) {
      stop();
      finish(error instanceof Error ? error : new Error(String(error)));
    }
  };
  const onData = (piece: Buffer | string): void =>
    attempt(() => reader.push(typeof piece === "string" ? Buffer.from(piece) : piece));
  const onEnd = (): void =>
    attempt(() => {
      reader.end();
      finish();
    });
  const stop = (): void => {
    input.off("data", onData);
    input.destroy(); // a read that is blocked is left behind
  };
  input.on("error", (error) => finish(new Error(`reading from the host failed: ${error.message}`)));
  input.on("close", onEnd); // without an end, when it was cut
  input.on("end", onEnd);
  input.on("data", onData);
  return stop;
}

/** Ends the connection in order when it is told to from outside. */
function onSignals(options: RunOptions, finish: () => void): () => void {
  const stop = (): void => finish();
  options.signal?.addEventListener("abort", stop);
  if (options.signal?.aborted === true) finish();
  const signals = options.input === undefined ? (["SIGTERM", "SIGINT", "SIGHUP"] as const) : [];
  for (const signal of signals) process.on(signal, stop);
  return () => {
    options.signal?.removeEventListener("abort", stop);
    for (const signal of signals) process.off(signal, stop);
  };
}

/** Waits for the handlers and closes the backend, within the budget. */
async function end(server: Server, over: AbortSignal): Promise<void> {
  const spent = new Deferred<never>();
  over.addEventListener("abort", () => {
    const running = server.running;
    const what =
      running.length > 0 ? `still running: ${running.join(", ")}` : "it is still closing";
    spent.reject(
      new AdapterError("outcomeUnknown", `the adapter did not end in time (${what})`, {
        hint: "something of it may be left, also where it works remotely",
      }),
    );
  });
  await Promise.race([server.quiesce(), spent.promise]);
  await Promise.race([server.close(over), spent.promise]);
}

/** Gives the last replies a short time to be written. */
async function flush(writer: FrameWriter, output: Writable): Promise<void> {
  const timeout = new Deferred<void>();
  const timer = setTimeout(timeout.resolve, FLUSH_GRACE_MS);
  const written = writer.idle().then(async () => {
    if (output.destroyed || output.errored !== null) return;
    output.end();
    if (!output.writableFinished) await once(output, "finish");
  });
  await Promise.race([written.catch(() => undefined), timeout.promise]);
  clearTimeout(timer);
}

/**
 * Gives up what could not be written. A write to the process's own output that is
 * blocked cannot be taken back, and would keep the process alive.
 */
function letGoOf(output: Writable, errors: readonly Error[]): void {
  const blocked = output === process.stdout && output.writableLength > 0;
  output.destroy();
  if (!blocked || output.errored !== null) return;
  const reasons = errors.map(({ message }) => `${message}; `).join("");
  process.stderr.write(`${reasons}the host does not read what is left to say\n`);
  process.exit(1);
}
