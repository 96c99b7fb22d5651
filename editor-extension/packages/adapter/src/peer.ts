import type { Readable, Writable } from "node:stream";
import { aborter, Deferred, Inbox, Outbox, reasonOf } from "./body.js";
import { AdapterError, clip, messageOf, peerError } from "./errors.js";
import { type Frame, NotSent } from "./frame.js";
import { encode, RawJSON } from "./json.js";
import { CANCEL_GRACE_MS, MAX_CALLBACKS } from "./limits.js";
import { type Body, WithBody } from "./methods.js";
import { FrameReader } from "./reader.js";
import { FrameWriter } from "./writer.js";

/** One request to the peer that is in flight, or whose reply's body still comes. */
interface Call {
  readonly method: string;
  readonly reply: Deferred<RawJSON | WithBody<RawJSON>>;
  readonly outbox: Outbox;
  readonly invokeTool: (call: RawJSON, signal: AbortSignal) => Promise<RawJSON>;
  /** Aborts when the reply has come: callbacks and the request's body are over. */
  readonly over: AbortController;
  inbox: Inbox | undefined;
  /** Runs while the peer has to end a cancelled request. */
  grace: NodeJS.Timeout | undefined;
}

/** What goes to the peer. */
export interface PeerRequest {
  readonly method: string;
  readonly data: RawJSON;
  /** Goes beside the frame; only to a peer that announced `caisson.bulk.v1`. */
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
  /** Answers the callbacks of a program. */
  readonly invokeTool: (call: RawJSON, signal: AbortSignal) => Promise<RawJSON>;
}

/** Choices of a {@link Peer}. */
export interface PeerOptions {
  /** What the peer reads. */
  readonly input: Writable;
  /** What the peer writes. */
  readonly output: Readable;
  /** Goes with every frame; empty sends none. */
  readonly token: string;
  readonly onEvent: (event: RawJSON) => void;
  /** Called once, at once, when the peer is of no more use. */
  readonly onFailure: (error: Error) => void;
  /** How long a cancelled request may take to end, in milliseconds. */
  readonly cancelGrace?: number;
}

const empty = new RawJSON(encode(null));

/** The host's end of a connection to another worker or adapter. */
export class Peer {
  readonly #options: PeerOptions;
  readonly #writer: FrameWriter;
  readonly #reader: FrameReader;
  readonly #calls = new Map<string, Call>();
  readonly #ended = new Deferred<void>();
  #lastId = 0;
  #callbacks = 0;
  #bulk = false;
  #error: Error | undefined;

  constructor(options: PeerOptions) {
    this.#options = options;
    this.#writer = new FrameWriter(options.input, (error) =>
      this.fail(new Error(`writing to the peer failed: ${error.message}`, { cause: error })),
    );
    this.#reader = new FrameReader((frame) => this.#take(frame), { banner: true, quote: true });
    const { output } = options;
    output.on("data", (piece: Buffer) => this.#attempt(() => this.#reader.push(piece)));
    output.on("end", () => this.#attempt(() => this.#end()));
    output.on("close", () => this.#attempt(() => this.#end()));
    output.on("error", (error) =>
      this.fail(new Error(`reading from the peer failed: ${error.message}`, { cause: error })),
    );
  }

  /** Why the peer is of no more use; undefined while it is. */
  get failure(): Error | undefined {
    return this.#error;
  }

  /** Resolves when the peer's output has ended, or it has failed. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Bodies may go both ways from here on. */
  enableBulk(): void {
    this.#bulk = true;
    this.#reader.enableBulk();
  }

  /**
   * Sends a request and waits for its terminal reply, also after `signal` has
   * aborted: then for 35 s at most, after which the peer has failed.
   */
  async call(request: PeerRequest): Promise<RawJSON | WithBody<RawJSON>> {
    const { signal } = request;
    if (this.#error !== undefined) throw unavailable(this.#error);
    if (signal.aborted) throw reasonOf(signal);
    const id = String(++this.#lastId);
    const { token } = this.#options;
    const call: Call = {
      method: request.method,
      reply: new Deferred(),
      outbox: new Outbox((raw) => this.#writer.send({ id, method: "body", token, raw })),
      invokeTool: request.invokeTool,
      over: aborter(),
      inbox: undefined,
      grace: undefined,
    };
    this.#calls.set(id, call);
    const cancel = (): void => this.#cancel(id, call);
    signal.addEventListener("abort", cancel);
    try {
      void this.#send(id, call, request);
      return await call.reply.promise;
    } finally {
      call.over.abort();
      if (call.inbox === undefined) {
        signal.removeEventListener("abort", cancel);
        this.#forget(id, call);
      }
    }
  }

  /** Ends the peer's input in order; its output may still come. */
  endInput(): void {
    this.#options.input.end();
  }

  /** Gives the peer up: everything in flight has an unknown outcome. Only the first reason counts. */
  fail(reason: Error): void {
    if (this.#error !== undefined) return;
    const error = reason.message.includes(this.#options.token)
      ? new Error(this.#clean(reason.message))
      : reason;
    this.#error = error;
    for (const [id, call] of this.#calls) {
      const unknown = outcomeUnknown(call.method, error);
      call.reply.reject(unknown);
      call.inbox?.abort(unknown);
      this.#forget(id, call);
    }
    this.#ended.resolve();
    this.#options.onFailure(error);
  }

  /** The error that the peer answered with. */
  #refusal(frame: Frame): AdapterError {
    const { message, kind, hint, path, retryable } = peerError(frame.error, frame.detail);
    return new AdapterError(kind, this.#clean(message), {
      hint: this.#clean(hint),
      path,
      retryable,
    });
  }

  /** What a peer said, without its token, which is nobody's but the two's. */
  #clean(text: string): string {
    return text.replaceAll(this.#options.token, "[token]");
  }

  async #send(id: string, call: Call, request: PeerRequest): Promise<void> {
    const { method, data, body } = request;
    const { token } = this.#options;
    try {
      if (body.length > 0 && !this.#bulk) throw new NotSent("the peer takes no bodies");
      await this.#writer.send({
        id,
        method,
        token,
        data,
        ...(body.length > 0 && { body: body.length }),
      });
    } catch (error) {
      if (error instanceof NotSent) {
        call.reply.reject(
          new AdapterError("internal", `${clip(method)} was not sent: ${error.message}`),
        );
      }
      return; // any other one has failed the peer, and the call with it
    }
    if (body.length === 0) return;
    try {
      await call.outbox.sendAll({ size: body.length, content: [body] }, call.over.signal);
    } catch (error) {
      // The reply came already, or the peer has failed; either way nobody reads on.
      this.#writer.post({ id, method: "body", token, error: messageOf(error) });
    }
  }

  #cancel(id: string, call: Call): void {
    if (this.#error !== undefined || call.grace !== undefined || this.#calls.get(id) !== call)
      return;
    this.#writer.post({ id, method: "cancel", token: this.#options.token });
    call.grace = setTimeout(
      () => this.fail(new Error("the peer did not end a cancelled request in time")),
      this.#options.cancelGrace ?? CANCEL_GRACE_MS,
    );
  }

  #forget(id: string, call: Call): void {
    clearTimeout(call.grace);
    if (this.#calls.get(id) === call) this.#calls.delete(id);
  }

  #attempt(step: () => void): void {
    if (this.#error !== undefined) return;
    try {
      step();
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #end(): void {
    this.#reader.end();
    this.fail(new Error("the peer has ended its output"));
  }

  #take(frame: Frame): void {
    if (this.#error !== undefined) return;
    switch (frame.method) {
      case "":
        this.#replied(frame);
        return;
      case "process":
        if (frame.data !== undefined) this.#options.onEvent(frame.data);
        return;
      case "tool":
        void this.#callback(frame);
        return;
      case "body":
        this.#piece(frame);
        return;
      case "body_taken":
        this.#calls.get(frame.id)?.outbox.grow(frame.body);
        return;
    }
  }

  #replied(frame: Frame): void {
    const call = this.#calls.get(frame.id);
    if (call === undefined || call.inbox !== undefined) return;
    if (frame.error !== "") {
      call.reply.reject(this.#refusal(frame));
      return;
    }
    const data = frame.data ?? empty;
    if (frame.body === 0) {
      clearTimeout(call.grace);
      call.reply.resolve(data);
      return;
    }
    call.inbox = this.#inbox(frame.id, call, frame.body);
    call.reply.resolve(new WithBody<RawJSON>(data, this.#stream(frame.id, call, call.inbox)));
  }

  #inbox(id: string, call: Call, size: number): Inbox {
    const { token } = this.#options;
    clearTimeout(call.grace);
    call.grace = undefined;
    return new Inbox(size, (total) =>
      this.#writer.post({ id, method: "body_taken", token, body: total }),
    );
  }

  /** The body of a reply. Whoever stops reading it early has the peer cancel the rest. */
  #stream(id: string, call: Call, inbox: Inbox): Body {
    const cancel = (): void => this.#cancel(id, call);
    async function* pieces(): AsyncGenerator<Uint8Array, void> {
      try {
        yield* inbox.content;
      } finally {
        if (!inbox.complete) cancel();
      }
    }
    return { size: inbox.size, content: { [Symbol.asyncIterator]: pieces } };
  }

  #piece(frame: Frame): void {
    const call = this.#calls.get(frame.id);
    if (call?.inbox === undefined) return;
    if (frame.error !== "") call.inbox.abort(this.#refusal(frame));
    else call.inbox.receive(frame.raw);
    if (call.inbox.complete) this.#forget(frame.id, call);
  }

  /** Answers a nested call of a program that runs. It never rejects. */
  async #callback(frame: Frame): Promise<void> {
    const { id } = frame;
    if (this.#callbacks >= MAX_CALLBACKS) {
      this.fail(new Error(`the peer has more than ${MAX_CALLBACKS} calls of programs waiting`));
      return;
    }
    this.#callbacks++;
    let answer: { id: string; data?: unknown; error?: string };
    try {
      const parent = this.#calls.get(frame.parentId);
      if (parent?.method !== "run_code" || parent.over.signal.aborted) {
        throw new Error("the program that calls is not running");
      }
      const data = await parent.invokeTool(frame.data ?? empty, parent.over.signal);
      answer = { id, data };
    } catch (error) {
      answer = { id, error: messageOf(error) };
    }
    this.#callbacks--;
    const { token } = this.#options;
    try {
      await this.#writer.send({ id, method: "callback", token, data: nested(answer) });
    } catch (error) {
      const text = `the answer cannot be sent: ${messageOf(error)}`;
      this.#writer.post({ id, method: "callback", token, data: { id, error: text } });
    }
  }
}

/** The nested object of a callback frame, whose data stays as it came. */
function nested(answer: { id: string; data?: unknown; error?: string }): RawJSON {
  const { data, ...rest } = answer;
  if (data === undefined) return new RawJSON(encode(rest));
  const head = JSON.stringify(rest).slice(0, -1);
  return new RawJSON(
    Buffer.concat([Buffer.from(`${head},"data":`), encode(data), Buffer.from("}")]),
  );
}

function unavailable(cause: Error): AdapterError {
  return new AdapterError("backendUnavailable", `the peer is gone: ${cause.message}`, { cause });
}

function outcomeUnknown(method: string, cause: Error): AdapterError {
  return new AdapterError(
    "outcomeUnknown",
    `the peer was lost during ${clip(method)}, whose outcome is unknown: ${cause.message}`,
    { hint: "look at what it did before trying again", cause },
  );
}
