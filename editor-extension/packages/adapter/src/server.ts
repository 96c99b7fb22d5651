import { checkSame, isRoot, readBinding } from "./binding.js";
import { aborter, Deferred, Inbox, Outbox, reasonOf, unlessAborted } from "./body.js";
import { checkCapabilities, checkResult, Operations } from "./checks.js";
import { AdapterError, clip, detailOf, isObject, messageOf } from "./errors.js";
import { type Frame, NotSent, type OutFrame } from "./frame.js";
import { encode, members, RawJSON, text } from "./json.js";
import {
  MAX_BODY,
  MAX_CALLBACKS,
  MAX_PENDING,
  MAX_REQUESTS,
  MAX_WAITING,
  VERSION,
} from "./limits.js";
import {
  type Answer,
  type Backend,
  type Body,
  type Context,
  type Handler,
  type Method,
  WithBody,
} from "./methods.js";
import { Token } from "./token.js";
import type { Initialize, Initialized } from "./types/initialize.js";
import type { ProcessEvent } from "./types/process.js";
import type { ToolCall } from "./types/tools.js";
import type { FrameWriter } from "./writer.js";

/** How far the handshake is. */
type State = "new" | "initializing" | "ready" | "failed";

/** One request that runs. */
interface Active {
  readonly id: string;
  readonly method: string;
  readonly data: RawJSON | undefined;
  /** Of the data and the body, in bytes. */
  readonly size: number;
  readonly abort: AbortController;
  /** The request's body, which may still be coming. */
  readonly inbox: Inbox | undefined;
  /** The reply's body, once it is being sent. */
  outbox: Outbox | undefined;
  /** Whether its handler has not ended. */
  live: boolean;
}

/** What a server needs of whoever runs it. */
export interface ServerHooks {
  readonly writer: FrameWriter;
  /** Bodies may come from here on. */
  enableBulk(): void;
  /** The connection is to end, because a shutdown was answered. */
  finish(): void;
  /** The connection is to end at once, and nothing more is to be written. */
  fail(error: Error): void;
}

const none = new Uint8Array(0);

/** The worker's end of one connection: it answers frames by the backend. */
export class Server {
  readonly #backend: Backend;
  readonly #hooks: ServerHooks;
  readonly #token = new Token();
  readonly #operations = new Operations();
  readonly #requests = new Map<string, Active>();
  readonly #callbacks = new Map<string, Deferred<RawJSON>>();
  readonly #lifetime = aborter();
  #handlers = 0;
  #quiet: Deferred<void> | undefined;
  #pending = 0;
  #lastCallback = 0;
  #state: State = "new";
  #closing = false;
  #binding: Initialize | undefined;
  #ready: (Initialized & { version: number }) | undefined;
  #hostCapabilities: readonly string[] = [];
  #bulk = false;
  /** Events from inside of initialize, which must follow its reply. */
  #early: OutFrame[] = [];

  constructor(backend: Backend, hooks: ServerHooks) {
    this.#backend = backend;
    this.#hooks = hooks;
  }

  /** Takes a frame of the host. A thrown error ends the connection. */
  take(frame: Frame): void {
    try {
      this.#token.check(frame.token);
    } catch (error) {
      this.#refuse(frame, error);
      return;
    }
    switch (frame.method) {
      case "cancel":
        this.#requests.get(frame.id)?.abort.abort(cancelled("the request was cancelled"));
        return;
      case "callback":
        this.#answered(frame);
        return;
      case "body":
        this.#piece(frame);
        return;
      case "body_taken":
        this.#requests.get(frame.id)?.outbox?.grow(frame.body);
        return;
    }
    try {
      this.#admit(frame);
    } catch (error) {
      this.#refuse(frame, error);
    }
  }

  /** Cancels every request and waits for the handlers. No request begins any more. */
  async quiesce(): Promise<void> {
    this.#closing = true;
    const why = cancelled("the connection has ended");
    for (const { abort } of this.#requests.values()) abort.abort(why);
    if (this.#handlers === 0) return;
    this.#quiet ??= new Deferred<void>();
    await this.#quiet.promise;
  }

  /** The methods of handlers that have not ended, for an error. */
  get running(): readonly string[] {
    return [...this.#requests.values()].filter(({ live }) => live).map(({ method }) => method);
  }

  /** Ends the lifetime of admitted processes and closes the backend, if it was ever used. */
  async close(signal: AbortSignal): Promise<void> {
    this.#lifetime.abort(cancelled("the adapter ends"));
    if (this.#binding !== undefined) await this.#backend.close?.(signal);
  }

  #admit(frame: Frame): void {
    const { id, method } = frame;
    if (id === "") throw invalid("a request without an id", "id");
    if (method === "") throw invalid("a request without a method", "method");
    if (frame.body > MAX_BODY) {
      throw invalid(`a body of ${frame.body} bytes; at most ${MAX_BODY} are taken`);
    }
    const size = (frame.data?.bytes.length ?? 0) + frame.body;
    if (this.#closing) {
      throw new AdapterError("backendUnavailable", "the adapter is ending", { retryable: true });
    }
    if (this.#requests.has(id)) {
      throw invalid(`a request with the id ${JSON.stringify(clip(id))} is still running`, "id");
    }
    if (this.#requests.size >= MAX_REQUESTS)
      throw overloaded(`${MAX_REQUESTS} requests are running`);
    if (this.#pending + size > MAX_PENDING) {
      throw overloaded("the requests that are running hold too much data");
    }
    if (this.#state === "failed") {
      throw invalid(`${clip(method)} after initialize has failed: open a new connection`);
    }
    if (this.#state === "initializing" || (this.#state === "new" && method !== "initialize")) {
      throw invalid(`${clip(method)} before initialize has succeeded on this connection`);
    }
    const tell = (total: number): void =>
      this.#hooks.writer.post({ id, method: "body_taken", body: total });
    const request: Active = {
      id,
      method,
      data: frame.data,
      size,
      abort: aborter(),
      inbox: frame.body > 0 ? new Inbox(frame.body, tell) : undefined,
      outbox: undefined,
      live: true,
    };
    const first = method === "initialize" && this.#state === "new";
    if (first) this.#state = "initializing";
    this.#requests.set(id, request);
    this.#pending += size;
    this.#handlers++;
    void this.#run(request, first ? frame.token : undefined);
  }

  /** Handles one request and replies. It never rejects. */
  async #run(request: Active, firstToken: string | undefined): Promise<void> {
    let reply: unknown;
    let failure: { error: unknown } | undefined;
    try {
      reply = await this.#handle(request, firstToken);
    } catch (error) {
      failure = { error };
    }
    request.live = false;
    if (--this.#handlers === 0) this.#quiet?.resolve();
    if (failure !== undefined && firstToken !== undefined) this.#state = "failed";
    await this.#reply(request, reply, failure);
    if (failure !== undefined) return;
    if (firstToken !== undefined) this.#sendEarly();
    if (request.method === "shutdown") this.#hooks.finish();
  }

  async #handle(request: Active, firstToken: string | undefined): Promise<unknown> {
    const { method, data, inbox, abort } = request;
    if (method === "initialize") return this.#initialize(request, firstToken);
    const body = inbox === undefined ? none : await unlessAborted(inbox.collect(), abort.signal);
    const context = this.#context(request, this.#bound(), body);
    const handler = Object.hasOwn(this.#backend.methods ?? {}, method)
      ? this.#backend.methods?.[method as Method]
      : undefined;
    const raw = data ?? new RawJSON(encode({}));
    const operation = method === "process/start" ? this.#operations.asked(raw.parse()) : "";
    const reply =
      handler !== undefined
        ? await this.#call(handler as Handler<Method>, method, raw, context)
        : await this.#forward(method, raw, context);
    const answer = reply instanceof WithBody ? reply.data : reply;
    if (method === "process/start") this.#operations.started(operation, answer);
    if (method === "process/list") this.#operations.listed(answer);
    return reply;
  }

  async #call(
    handler: Handler<Method>,
    method: string,
    raw: RawJSON,
    context: Context,
  ): Promise<unknown> {
    const data = raw.parse();
    if (!isObject(data)) throw invalid(`${method}: the data is no object`);
    if (method !== "execute") return handler(data as never, context);
    const reply = await handler(readExecute(data, context.body) as never, context);
    return reply instanceof RawJSON || reply instanceof WithBody ? reply : checkResult(reply);
  }

  async #forward(method: string, raw: RawJSON, context: Context): Promise<unknown> {
    if (this.#backend.forward === undefined) {
      throw new AdapterError("unsupported", `unknown method ${JSON.stringify(clip(method))}`);
    }
    return this.#backend.forward(method, raw, context);
  }

  /** Binds the session, or answers the same again. */
  async #initialize(request: Active, firstToken: string | undefined): Promise<unknown> {
    const binding = readBinding(request.data);
    if (firstToken === undefined) {
      checkSame(this.#bound(), binding);
      return this.#ready;
    }
    this.#token.fix(firstToken);
    this.#binding = binding;
    this.#hostCapabilities = binding.capabilities ?? [];
    const context = this.#context(request, binding, none);
    const initialized = await this.#backend.initialize(binding, context);
    if (request.abort.signal.aborted) throw reasonOf(request.abort.signal);
    const { root } = initialized;
    const capabilities = [...new Set([...(initialized.capabilities ?? []), ...this.#own()])];
    if (!isRoot(root)) throw new Error("the adapter's root is not an absolute path");
    checkCapabilities(this.#backend, capabilities);
    this.#ready = { version: VERSION, root, capabilities };
    this.#state = "ready";
    this.#bulk = this.#hostHas("caisson.bulk.v1") && capabilities.includes("caisson.bulk.v1");
    if (this.#bulk) this.#hooks.enableBulk();
    return this.#ready;
  }

  /** What the kit itself can do. */
  #own(): readonly string[] {
    return this.#hostHas("caisson.errors.v1") ? ["caisson.errors.v1"] : [];
  }

  #bound(): Initialize {
    if (this.#binding === undefined) throw new Error("nothing is bound yet");
    return this.#binding;
  }

  #hostHas(capability: string): boolean {
    return this.#hostCapabilities.includes(capability);
  }

  #context(request: Active, binding: Initialize, body: Uint8Array): Context {
    return {
      id: request.id,
      signal: request.abort.signal,
      lifetime: this.#lifetime.signal,
      binding,
      body,
      hostHas: (capability) => this.#hostHas(capability),
      emitProcess: (event) => this.#emit(event),
      invokeTool: (call, signal) => this.#invoke(request, call, signal),
      fail: (error) => this.#hooks.fail(error),
    };
  }

  #emit(event: ProcessEvent | RawJSON): void {
    const frame: OutFrame = { id: "", method: "process", data: event };
    if (this.#state === "ready" && this.#early.length === 0) this.#hooks.writer.post(frame);
    else if (this.#state !== "failed" && this.#early.length < MAX_WAITING) this.#early.push(frame);
  }

  #sendEarly(): void {
    for (const frame of this.#early) this.#hooks.writer.post(frame);
    this.#early = [];
  }

  /** Calls a tool of the host from inside of a program. */
  async #invoke<T extends ToolCall | RawJSON>(
    request: Active,
    call: T,
    signal: AbortSignal | undefined,
  ): Promise<Answer<T>> {
    if (request.method !== "run_code") {
      throw new AdapterError(
        "unsupported",
        `a tool of the host can be called from run_code only, not from ${clip(request.method)}`,
      );
    }
    if (!request.live) throw cancelled("the program that calls has ended");
    const signals = [request.abort.signal, ...(signal === undefined ? [] : [signal])];
    const aborted = signals.find((s) => s.aborted);
    if (aborted !== undefined) throw reasonOf(aborted);
    if (this.#callbacks.size >= MAX_CALLBACKS) {
      throw overloaded(`${MAX_CALLBACKS} calls of programs wait for the host`);
    }
    const id = `callback-${++this.#lastCallback}`;
    const answer = new Deferred<RawJSON>();
    this.#callbacks.set(id, answer);
    try {
      await this.#hooks.writer.send({ id, parent_id: request.id, method: "tool", data: call });
      const raw = await unlessAborted(answer.promise, ...signals);
      return (call instanceof RawJSON ? raw : raw.parse()) as Answer<T>;
    } finally {
      this.#callbacks.delete(id);
    }
  }

  /** Hands the host's answer to the callback that waits for it. */
  #answered(frame: Frame): void {
    const answer = this.#callbacks.get(frame.id);
    if (answer === undefined) return;
    this.#callbacks.delete(frame.id);
    try {
      const nested = members(Buffer.from(frame.data?.bytes ?? none));
      if (nested.get("id")?.parse() !== frame.id) {
        throw new Error("the host's answer has another id than its frame");
      }
      const error = nested.get("error")?.parse() ?? "";
      if (error !== "") throw new Error(clip(String(error)));
      answer.resolve(nested.get("data") ?? new RawJSON(encode({})));
    } catch (error) {
      answer.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Takes a piece of a request's body. Pieces of what was refused go by. */
  #piece(frame: Frame): void {
    const inbox = this.#requests.get(frame.id)?.inbox;
    if (!this.#bulk || inbox === undefined) return;
    if (frame.error !== "") {
      inbox.abort(new Error(`the host did not send the whole body: ${clip(frame.error)}`));
    } else inbox.receive(frame.raw);
  }

  /** Answers a frame that is not handled. */
  #refuse(frame: Frame, error: unknown): void {
    this.#hooks.writer.post(this.#errorFrame(frame.id, error));
  }

  #errorFrame(id: string, error: unknown): OutFrame {
    const frame = { id, error: messageOf(error) };
    return this.#hostHas("caisson.errors.v1") ? { ...frame, detail: detailOf(error) } : frame;
  }

  /** Sends the terminal reply, and its body if it has one. It never rejects. */
  async #reply(
    request: Active,
    reply: unknown,
    failure: { error: unknown } | undefined,
  ): Promise<void> {
    const { id } = request;
    const body = reply instanceof WithBody && reply.body.size > 0 ? reply.body : undefined;
    let frame: OutFrame;
    if (failure !== undefined) frame = this.#errorFrame(id, failure.error);
    else if (body !== undefined && !this.#bulk) {
      frame = this.#errorFrame(id, new Error("the reply has a body that this host cannot take"));
    } else {
      const data = reply instanceof WithBody ? reply.data : reply;
      frame = { id, data: data ?? null, ...(body !== undefined && { body: body.size }) };
    }
    this.#settle(request, frame.body !== undefined);
    try {
      await this.#hooks.writer.send(frame);
    } catch (error) {
      this.#requests.delete(id);
      if (error instanceof NotSent)
        this.#hooks.writer.post(this.#errorFrame(id, tooLong(request, error)));
      return;
    }
    if (body !== undefined && frame.body !== undefined) await this.#sendBody(request, body);
  }

  async #sendBody(request: Active, body: Body): Promise<void> {
    const { id, outbox, abort } = request;
    try {
      await outbox?.sendAll(body, abort.signal);
    } catch (error) {
      this.#hooks.writer.post({ ...this.#errorFrame(id, error), method: "body" });
    } finally {
      if (this.#requests.get(id) === request) this.#requests.delete(id);
    }
  }

  /** Ends a request's life but for the body of its reply: its id is free again. */
  #settle(request: Active, body: boolean): void {
    this.#pending -= request.size;
    if (body) {
      const { id } = request;
      request.outbox = new Outbox((raw) => this.#hooks.writer.send({ id, method: "body", raw }));
    } else this.#requests.delete(request.id);
  }
}

/** The data of execute with its arguments, which may have come as the body. */
function readExecute(data: Record<string, unknown>, body: Uint8Array): unknown {
  const { call, actor } = data;
  if (!isObject(call) || typeof call["name"] !== "string") {
    throw invalid("execute: the call has no name", "call.name");
  }
  if (typeof actor !== "string" || actor === "") {
    throw invalid("execute: the actor is missing", "actor");
  }
  const given = call["arguments"] ?? "";
  const args = given === "" && body.length > 0 ? text(body) : given;
  if (typeof args !== "string" || !isObject(parsed(args))) {
    throw invalid("execute: the arguments are not the text of a JSON object", "call.arguments");
  }
  const mode = data["permission_mode"] ?? "";
  if (mode !== "" && mode !== "standard" && mode !== "read_only" && mode !== "unconfined") {
    throw invalid("execute: there is no such permission mode", "permission_mode");
  }
  return { ...data, call: { ...call, arguments: args } };
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function invalid(message: string, path = ""): AdapterError {
  return new AdapterError("invalidParams", message, { path });
}

function cancelled(message: string): AdapterError {
  return new AdapterError("cancelled", message);
}

function overloaded(message: string): AdapterError {
  return new AdapterError("overloaded", message, {
    hint: "try again when some of them have ended",
    retryable: true,
  });
}

function tooLong(request: Active, cause: Error): AdapterError {
  return new AdapterError("internal", `the reply to ${clip(request.method)}: ${cause.message}`, {
    hint: "ask for less at once",
    cause,
  });
}
