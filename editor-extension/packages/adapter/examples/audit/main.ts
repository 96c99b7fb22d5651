/**
 * An adapter that writes down what is asked for and by whom, and delegates all of
 * it unchanged.
 *
 *     node audit/main.js --log FILE [--grace-ms MS] -- COMMAND...
 *     node audit/main.js --log /var/log/caisson.jsonl -- caisson worker
 *
 * The log has one JSON object a line, for the beginning and for the end of each
 * request. It holds no variables, which are secret, and no contents: of a call's
 * arguments only the head of a command line.
 */
import { type FileHandle, open } from "node:fs/promises";
import { parseArgs } from "node:util";
import { AdapterError, type Context, delegate, type RawJSON, run } from "@caisson/adapter";

/** How much of a command line is logged, in characters. */
const maxCommand = 1000;

/** What one line tells beside its time and event; undefined members are left out. */
interface Entry {
  readonly session: string;
  readonly method: string;
  readonly root?: string;
  readonly tool?: unknown;
  readonly actor?: unknown;
  readonly mode?: unknown;
  readonly command?: string;
}

/** Writes entries one after the other. */
class Journal {
  readonly #file: FileHandle;
  #last: Promise<void> = Promise.resolve();

  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Logs what `act` does. What cannot be logged beforehand is not done. */
  async around<T>(entry: Entry, act: () => Promise<T>): Promise<T> {
    const began = performance.now();
    await this.#write({ event: "begin", ...entry }).catch((cause: unknown) => {
      throw new AdapterError(
        "denied",
        "the audit log cannot be written, and nothing is done without it",
        {
          cause,
        },
      );
    });
    let error: string | undefined;
    try {
      return await act();
    } catch (thrown) {
      error = String(thrown);
      throw thrown;
    } finally {
      await this.#write({
        event: "end",
        ...entry,
        ms: Math.round(performance.now() - began),
        error,
      });
    }
  }

  async close(): Promise<void> {
    await this.#last;
    await this.#file.close();
  }

  async #write(entry: object): Promise<void> {
    const line = `${JSON.stringify({ time: new Date().toISOString(), ...entry })}\n`;
    const written = this.#last.then(() => this.#file.appendFile(line));
    this.#last = written.catch(() => undefined); // whoever wrote the line is told
    await written;
  }
}

/** What of a request may stand in the log. */
function entryOf(method: string, data: RawJSON, context: Context): Entry {
  const entry = { session: context.binding.session, method };
  if (method !== "execute" && method !== "process/start" && method !== "run_code") return entry;
  const { actor, permission_mode: mode, call, command, argv } = record(data.parse());
  const { name: tool, arguments: args } = record(call);
  const line = command ?? (Array.isArray(argv) ? argv.join(" ") : record(parsed(args))["command"]);
  return {
    ...entry,
    actor,
    mode,
    ...(tool !== undefined && { tool }),
    ...(typeof line === "string" && { command: line.slice(0, maxCommand) }),
  };
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** What cannot be understood here is refused by the peer, with better words. */
function parsed(json: unknown): unknown {
  try {
    return typeof json === "string" ? JSON.parse(json) : undefined;
  } catch {
    return undefined;
  }
}

const { values: flags, positionals: command } = parseArgs({
  options: { log: { type: "string" }, "grace-ms": { type: "string" } },
  allowPositionals: true,
});
if (flags.log === undefined || command.length === 0) {
  console.error("usage: audit --log FILE [--grace-ms MS] -- COMMAND...");
  process.exit(2);
}
const grace = flags["grace-ms"];
const peer = delegate({
  command,
  ...(grace !== undefined && { shutdown_grace_ms: Number(grace) }),
});
const journal = new Journal(await open(flags.log, "a", 0o600));

await run({
  initialize: (binding, context) => {
    const { session, root } = binding;
    const entry = { session, method: "initialize", root };
    return journal.around(entry, () => peer.initialize(binding, context));
  },
  forward: (method, data, context) =>
    journal.around(entryOf(method, data, context), () => peer.forward(method, data, context)),
  close: async (signal) => {
    try {
      await peer.close(signal);
    } finally {
      await journal.close();
    }
  },
});
