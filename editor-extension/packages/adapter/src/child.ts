import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { Deferred, within } from "./body.js";
import { AdapterError } from "./errors.js";

/** How long output may still come after the exit, in milliseconds. */
const drain = 100;

/** A program that was started for a delegate. Its standard error is the adapter's. */
export class Child {
  readonly #name: string;
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #exited = new Deferred<string>();

  private constructor(name: string, process: ChildProcessByStdio<Writable, Readable, null>) {
    this.#name = name;
    this.#process = process;
    process.once("exit", (code, signal) => {
      this.#exited.resolve(
        code === 0 ? "" : code === null ? `by ${signal}` : `with exit code ${code}`,
      );
    });
  }

  /** Starts the program, with exactly these variables or else the adapter's. */
  static async start(
    command: readonly string[],
    env: Readonly<Record<string, string>> | undefined,
  ): Promise<Child> {
    const [program = "", ...args] = command;
    const process = spawn(program, args, {
      stdio: ["pipe", "pipe", "inherit"],
      // A group of its own, so that nothing of it is left when it must be killed.
      detached: globalThis.process.platform !== "win32",
      ...(env !== undefined && { env }),
    });
    const child = new Child(program, process);
    await new Promise<void>((resolve, reject) => {
      process.once("spawn", resolve);
      process.once("error", (cause) => {
        reject(
          new AdapterError("backendUnavailable", `${program} cannot be started: ${cause.message}`, {
            cause,
          }),
        );
      });
    });
    process.on("error", () => undefined); // a failed kill is told by the exit that does not come
    return child;
  }

  /** What it reads. */
  get input(): Writable {
    return this.#process.stdin;
  }

  /** What it writes. */
  get output(): Readable {
    return this.#process.stdout;
  }

  /**
   * Ends its input and waits for its exit. When that takes longer than `grace`
   * milliseconds, or `signal` aborts, it is killed with its group. It throws when
   * it had to be, and when it did not exit with 0.
   */
  async close(grace: number, signal: AbortSignal): Promise<void> {
    this.input.end();
    let how: string;
    try {
      how = await within(grace, this.#exited.promise, signal);
    } catch {
      this.#kill();
      await this.#exited.promise;
      throw new AdapterError("outcomeUnknown", `${this.#name} did not end in time and was killed`, {
        hint: "something of it may be left, also where it works remotely",
      });
    } finally {
      await this.#drained();
    }
    if (how !== "") throw new Error(`${this.#name} ended ${how}`);
  }

  /** Waits shortly for what it still has written; somebody else may hold its output. */
  async #drained(): Promise<void> {
    if (!this.output.readableEnded && !this.output.destroyed) {
      await within(drain, once(this.output, "end")).catch(() => undefined);
    }
    this.output.destroy();
  }

  #kill(): void {
    const { pid } = this.#process;
    if (pid === undefined || this.#process.exitCode !== null || this.#process.signalCode !== null)
      return;
    try {
      if (process.platform === "win32") this.#process.kill("SIGKILL");
      else process.kill(-pid, "SIGKILL");
    } catch {
      this.#process.kill("SIGKILL"); // its group is gone or never was
    }
  }
}
