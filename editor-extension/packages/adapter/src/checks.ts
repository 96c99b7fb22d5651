import { AdapterError, isObject } from "./errors.js";
import { encode, RawJSON } from "./json.js";
import { MAX_INLINE, MAX_PARTS, MAX_RESULT } from "./limits.js";
import type { Backend, Method } from "./methods.js";

/** How many starts are remembered; a session that starts more is checked for the latest. */
const maxOperations = 10_000;

/**
 * The starts of processes that went through this connection. Whoever announces
 * `process.start.v1` has promised that the reply to a start and the record in
 * `process/list` both carry the host's operation id.
 */
export class Operations {
  /** Operation ids by process id. */
  readonly #ids = new Map<string, string>();

  /** Checks a request to start, and returns its operation id. */
  asked(data: unknown): string {
    const id = isObject(data) ? data["operation_id"] : undefined;
    if (typeof id === "string" && id !== "") return id;
    throw new AdapterError("invalidParams", "process/start: the operation id is missing", {
      path: "operation_id",
    });
  }

  /** Checks the record that a start was answered with. */
  started(operation: string, reply: unknown): void {
    const record = plain(reply);
    const id = isObject(record) ? record["id"] : undefined;
    if (!isObject(record) || typeof id !== "string" || id === "") {
      throw breach("the adapter's reply to process/start is no record");
    }
    if (record["operation_id"] !== operation) {
      throw breach(
        `the adapter answered the start of ${operation} with the record of another operation`,
      );
    }
    if (this.#ids.size >= maxOperations) this.#ids.clear();
    this.#ids.set(id, operation);
  }

  /** Checks the records of a list. */
  listed(reply: unknown): void {
    const records = plain(reply);
    if (!Array.isArray(records)) throw breach("the adapter's reply to process/list is no list");
    for (const record of records) {
      if (!isObject(record) || typeof record["id"] !== "string") {
        throw breach("the adapter's reply to process/list holds what is no record");
      }
      const operation = this.#ids.get(record["id"]);
      if (operation !== undefined && record["operation_id"] !== operation) {
        throw breach(`the record of process ${record["id"]} does not name its operation`);
      }
    }
  }
}

/** What was started runs, so nobody may start it again. */
function breach(message: string): AdapterError {
  return new AdapterError("outcomeUnknown", message, {
    hint: "list the processes; the adapter breaks process.start.v1",
  });
}

function plain(value: unknown): unknown {
  return value instanceof RawJSON ? value.parse() : value;
}

/** Throws for a tool result that no host may be sent. */
export function checkResult(reply: unknown): RawJSON {
  if (!isObject(reply)) throw new Error("the adapter's tool answered with no result");
  const content = reply["content"] ?? [];
  if (!Array.isArray(content)) throw new Error("the content of a tool's result is no list");
  if (content.length > MAX_PARTS) throw tooMuch(`${content.length} parts`);
  let inline = 0;
  for (const part of content) {
    const data = isObject(part) ? part["data"] : undefined;
    if (typeof data === "string") inline += Math.floor((data.length * 3) / 4);
  }
  if (inline > MAX_INLINE) throw tooMuch(`${inline} bytes of inline data`);
  const encoded = encode(reply);
  if (encoded.length > MAX_RESULT) throw tooMuch(`${encoded.length} bytes`);
  return new RawJSON(encoded);
}

function tooMuch(what: string): AdapterError {
  return new AdapterError("internal", `the result of the tool has ${what}, more than may be sent`, {
    hint: "ask for less at once",
  });
}

/** The methods that a capability promises. */
const promised: ReadonlyMap<string, readonly Method[]> = new Map<string, readonly Method[]>([
  ["process.start.v1", ["process/start", "process/list"]],
  ["caisson.process.v1", ["process/close_stdin", "process/signal"]],
  ["caisson.fs.v1", ["fs/stat", "fs/read_directory", "fs/read_file", "fs/write_file"]],
  ["caisson.tools.v1", ["tools/list"]],
  ["caisson.shutdown.v1", ["shutdown"]],
]);

/** Throws for a capability whose methods the backend does not have. */
export function checkCapabilities(backend: Backend, capabilities: readonly string[]): void {
  for (const capability of capabilities) {
    if (capability === "caisson.socket.v2") {
      throw new Error("the adapter announces caisson.socket.v2, which this kit does not serve");
    }
    const methods = backend.forward === undefined ? (promised.get(capability) ?? []) : [];
    for (const method of methods) {
      if (backend.methods?.[method] === undefined) {
        throw new Error(`the adapter announces ${capability} without ${method}`);
      }
    }
    if (capability === "process.start.v1" && backend.close === undefined) {
      throw new Error(`the adapter announces ${capability} without close`);
    }
  }
}
