import { randomBytes } from "node:crypto";
import type { Readable, Writable } from "node:stream";
import { isRoot } from "./binding.js";
import { aborter } from "./body.js";
import { Child } from "./child.js";
import { AdapterError, isObject } from "./errors.js";
import { encode, RawJSON } from "./json.js";
import { MAX_TIMEOUT_MS, SHUTDOWN_GRACE_MS, VERSION } from "./limits.js";
import type { Backend, Context, WithBody } from "./methods.js";
import { Peer } from "./peer.js";
import type { Initialize, Initialized } from "./types/initialize.js";

/** A peer that is a program to start. */
export interface DelegateCommand {
  /** The argument list. Nothing is searched for or tried in its place, and no shell sees it. */
  readonly command: readonly string[];
  /** All variables of the program; when left out it inherits the adapter's. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * How long it may take to exit once its input has ended, in milliseconds from 1
   * to 2147483647; 10000 when left out. Then it is killed. It must be within the
   * adapter's own budget.
   */
  readonly shutdown_grace_ms?: number;
  readonly input?: undefined;
  readonly output?: undefined;
  readonly close?: undefined;
}

/** A peer behind a connection that is there already. */
export interface DelegateStreams {
  /** What the peer reads. */
  readonly input: Writable;
  /** What the peer writes. */
  readonly output: Readable;
  /** Ends both, and returns when the peer has ended. Called once. */
  readonly close: () => void | Promise<void>;
  readonly command?: undefined;
  readonly env?: undefined;
  readonly shutdown_grace_ms?: undefined;
}

/** Names the peer that a {@link delegate} forwards to. */
export type DelegateOptions = (DelegateCommand | DelegateStreams) & {
  /** The capabilities without which the peer is refused. */
  readonly capabilities?: readonly string[];
};

/** A backend that forwards; its members can be wrapped one by one. */
export interface Delegate extends Backend {
  initialize(binding: Initialize, context: Context): Promise<Initialized>;
  forward(method: string, data: RawJSON, context: Context): Promise<RawJSON | WithBody<RawJSON>>;
  close(signal: AbortSignal): Promise<void>;
}

/**
 * Makes a backend that forwards every request, unchanged, to one peer. It starts
 * the peer at initialize with the identical, full binding, checks its version, its
 * root and the capabilities that are required, and passes on its replies, errors,
 * events, callbacks and bodies. The peer gets a token of its own.
 *
 * It does not search, retry or replace. A peer that fails is closed at once, also
 * while the host's connection stays open, and the adapter ends by
 * {@link Context.fail}: what was in flight has an unknown outcome. A cancelled request is
 * cancelled at the peer, which has 35 s to end it; then it has failed.
 *
 * It throws a TypeError or RangeError for options that contradict each other.
 */
export function delegate(options: DelegateOptions): Delegate {
  check(options);
  const relay = new Relay(options);
  return {
    initialize: (binding, context) => relay.initialize(binding, context),
    forward: (method, data, context) => relay.forward(method, data, context),
    close: (signal) => relay.close(signal),
  };
}

function check(options: DelegateOptions): void {
  const { command, input, output, close, env, shutdown_grace_ms: grace } = options;
  const streams = [input, output, close].filter((end) => end !== undefined).length;
  if ((command !== undefined) === streams > 0) {
    throw new TypeError("delegate needs either a command, or input, output and close");
  }
  if (command === undefined) {
    if (streams < 3) throw new TypeError("a delegate's connection needs input, output and close");
    if (env !== undefined) throw new TypeError("env belongs to a delegate's command");
    if (grace !== undefined)
      throw new TypeError("shutdown_grace_ms belongs to a delegate's command");
    return;
  }
  if (command.length === 0 || command[0] === "") {
    throw new TypeError("the delegate's command names no program");
  }
  if (grace !== undefined && (!Number.isInteger(grace) || grace < 1 || grace > MAX_TIMEOUT_MS)) {
    throw new RangeError(`shutdown_grace_ms must be a whole number from 1 to ${MAX_TIMEOUT_MS}`);
  }
}

/** Capabilities of a host that change what a peer sends, all of which is passed on. */
const relayed: ReadonlySet<string> = new Set(["caisson.bulk.v1", "caisson.errors.v1"]);

/** What of the initialize data is for the host's own ears is left out. */
function handOn(binding: Initialize): RawJSON {
  const { socket: _, capabilities, ...rest } = binding;
  const known = capabilities?.filter((capability) => relayed.has(capability));
  return new RawJSON(encode(known === undefined ? rest : { ...rest, capabilities: known }));
}

function noHandshake(cause: Error): AdapterError {
  return new AdapterError(
    "backendUnavailable",
    `the peer did not answer initialize: ${cause.message}`,
    { cause },
  );
}

class Relay {
  readonly #options: DelegateOptions;
  #peer: Peer | undefined;
  #child: Child | undefined;
  /** Its initialize has succeeded, so that its end is the end of the adapter. */
  #ready = false;
  /** The peer was told to end, so its end is no failure. */
  #leaving = false;
  #closing: Promise<void> | undefined;
  readonly #abandon = aborter();

  constructor(options: DelegateOptions) {
    this.#options = options;
  }

  async initialize(binding: Initialize, context: Context): Promise<Initialized> {
    const { input, output } = await this.#connect();
    const peer = new Peer({
      input,
      output,
      token: randomBytes(32).toString("hex"),
      onEvent: (event) => context.emitProcess(event),
      onFailure: (error) => {
        void this.#end();
        if (this.#ready && !this.#leaving) context.fail(error);
      },
    });
    this.#peer = peer;
    try {
      const reply = await peer.call({
        method: "initialize",
        data: handOn(binding),
        body: new Uint8Array(0),
        signal: context.signal,
        invokeTool: () => Promise.reject(new Error("initialize calls no tools")),
      });
      const initialized = this.#checked(reply, binding, peer);
      this.#ready = true;
      return initialized;
    } catch (error) {
      void this.#end();
      throw peer.failure === undefined ? error : noHandshake(peer.failure);
    }
  }

  async forward(
    method: string,
    data: RawJSON,
    context: Context,
  ): Promise<RawJSON | WithBody<RawJSON>> {
    const peer = this.#peer;
    if (peer === undefined) throw new Error(`${method} came before the peer was started`);
    if (method === "shutdown") this.#leaving = true;
    try {
      return await peer.call({
        method,
        data,
        body: context.body,
        signal: context.signal,
        invokeTool: (call, signal) => context.invokeTool(call, signal),
      });
    } catch (error) {
      if (method === "shutdown") this.#leaving = false;
      throw error;
    }
  }

  async close(signal: AbortSignal): Promise<void> {
    this.#leaving = true;
    if (signal.aborted) this.#abandon.abort();
    signal.addEventListener("abort", () => this.#abandon.abort());
    if (this.#peer !== undefined) await this.#end();
  }

  async #connect(): Promise<{ input: Writable; output: Readable }> {
    const { command, env, input, output } = this.#options;
    if (command === undefined) return { input, output };
    this.#child = await Child.start(command, env);
    return this.#child;
  }

  #checked(reply: RawJSON | WithBody<RawJSON>, binding: Initialize, peer: Peer): Initialized {
    const raw = reply instanceof RawJSON ? reply : reply.data;
    const answer = raw.parse();
    if (!isObject(answer) || answer["version"] !== VERSION) {
      const version = isObject(answer) ? JSON.stringify(answer["version"]) : "nothing";
      throw new AdapterError(
        "protocolMismatch",
        `the peer speaks protocol ${version}; this adapter speaks ${VERSION}`,
        { hint: `delegate to a program that speaks protocol ${VERSION}` },
      );
    }
    const { root } = answer;
    if (typeof root !== "string" || !isRoot(root)) {
      throw new AdapterError("protocolMismatch", "the peer's root is not an absolute path");
    }
    const announced = Array.isArray(answer["capabilities"]) ? answer["capabilities"] : [];
    const capabilities = announced.filter((c) => typeof c === "string");
    for (const required of this.#options.capabilities ?? []) {
      if (capabilities.includes(required)) continue;
      throw new AdapterError("unsupported", `the peer lacks the capability ${required}`);
    }
    const bulk = capabilities.includes("caisson.bulk.v1");
    if (bulk && binding.capabilities?.includes("caisson.bulk.v1") === true) peer.enableBulk();
    // A shared socket would lead past the adapter.
    return { root, capabilities: capabilities.filter((c) => c !== "caisson.socket.v2") };
  }

  /** Ends the peer, once; how that went is told to whoever closes. */
  #end(): Promise<void> {
    this.#closing ??= this.#endNow();
    this.#closing.catch(() => undefined);
    return this.#closing;
  }

  async #endNow(): Promise<void> {
    const { close, shutdown_grace_ms: grace = SHUTDOWN_GRACE_MS } = this.#options;
    if (this.#child !== undefined) {
      await this.#child.close(grace, this.#abandon.signal);
    } else {
      this.#peer?.endInput();
      await close?.();
    }
    this.#peer?.fail(new Error("the peer was closed"));
  }
}
