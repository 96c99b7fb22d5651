import type {
  ClientNotifications,
  ClientRequests,
  InitializeParams,
  InitializeResult,
  ProgressValue,
  ServerNotifications,
  ServerRequests,
} from "@caisson/protocol";
import { protocolVersion } from "@caisson/protocol";
import {
  CancellationToken,
  createMessageConnection,
  ErrorCodes,
  type MessageConnection,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node";
import type { Child } from "./child.js";
import { type Disposable, Emitter } from "./emitter.js";
import { Encoder } from "./encoder.js";
import { type End, kept, lastWords } from "./end.js";
import { isErrorData, ServiceError, serviceError } from "./errors.js";
import { Vigil } from "./vigil.js";

/** How long the service may take for its orderly end before it is killed, in ms. */
const shutdownBudget = 15_000;

/**
 * How long a program may take for its end whose greeting was none that this side takes,
 * which has done nothing yet, or that does not answer, which will hardly hear of it. In ms.
 */
const refusedBudget = 2_000;

/** How long a program may take to greet; one that is no service may never do it. In ms. */
const greetingBudget = 20_000;

/** How much of the reason is told for which a program was ended, in characters. */
const keptReason = 200;

/** How long after the end of its streams a program may end, in ms. */
const closingBudget = 2_000;

const silent = `The program caisson did not greet within ${greetingBudget / 1000} s and was ended.`;

const broken = "It was ended, as what it said was no message of the protocol:";

/**
 * How long a service that is to end may take for a sign of life before it is killed, in ms:
 * a window that closes waits 4 s, and leaves behind what has not ended by then.
 */
const lifeBudget = 3_000;

/** What a service answers at once whatever it does: that there is no such method. */
const signOfLife = "$/alive";

/** What a request may come with. */
export interface RequestOptions {
  /** Cancels the request, which is answered all the same. */
  token?: CancellationToken | undefined;
  /** Is told how the request gets on; its parameters must take a workDoneToken. */
  progress?: ((value: ProgressValue) => void) | undefined;
}

/** One running service and the conversation with it. */
export class Connection {
  /** The service's answer to initialize. */
  server!: InitializeResult;

  /** Fires once, when the service is gone. */
  readonly ended: Promise<End>;

  /** Whether it is gone: what it asked for nobody waits for any more. */
  get over(): boolean {
    return this.gone !== undefined;
  }

  private readonly output = new Emitter<string>();
  /** Each piece of text that the service wrote to stderr. */
  readonly onStderr = this.output.event;

  private readonly silence = new Emitter<boolean>();
  /** Fires with true when it does not answer any more, and with false when it does again. */
  readonly onSilence = this.silence.event;

  private readonly vigil = new Vigil(
    () => void this.askForLife(),
    (silent) => this.silence.fire(silent),
  );

  /** What tells the listeners of a notification, by its method. */
  private readonly notified = new Map<string, Emitter<unknown>>();

  private gone: End | undefined;
  private errors = "";
  private nextToken = 0;

  private constructor(
    private readonly child: Child,
    private readonly rpc: MessageConnection,
    private readonly encoder: Encoder,
  ) {
    child.stderr.setEncoding("utf8");
    child.stderr.on("data", (text: string) => this.said(text));
    this.ended = child.ended.then((exit) => {
      this.gone = { ...exit, errors: this.errors };
      this.vigil.end();
      rpc.dispose(); // which fails the requests in flight
      return this.gone;
    });
  }

  /**
   * Greets a program that has just been started as a service. What listen registers
   * is in place before the first message comes. A program that is not taken is ended,
   * which nobody waits for: it may not listen.
   */
  static async start(
    child: Child,
    params: InitializeParams,
    listen: (connection: Connection) => void,
  ): Promise<Connection> {
    const reader = new StreamMessageReader(child.stdout);
    const encoder = new Encoder();
    const writer = new StreamMessageWriter(child.stdin, { contentTypeEncoder: encoder });
    const rpc = createMessageConnection(reader, writer);
    const connection = new Connection(child, rpc, encoder);
    reader.onError((error) => connection.breach(error));
    listen(connection);
    rpc.listen();
    // Only then: nothing is to be read before there is somebody who takes it.
    child.stdout.on("data", () => connection.vigil.heard());
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      child.kill();
    }, greetingBudget);
    try {
      connection.server = await connection.greet(params);
    } catch (thrown) {
      void connection.stop(refusedBudget);
      throw late ? new ServiceError(silent, { hint: "Look into the log." }) : thrown;
    } finally {
      clearTimeout(timer);
    }
    return connection;
  }

  private said(text: string): void {
    this.errors = kept(this.errors, text);
    this.output.fire(text);
  }

  /**
   * What the program says is no message: an answer may be lost, and where the next one
   * begins nobody knows. It is ended, so that nobody waits for what never comes.
   */
  private breach(error: Error): void {
    if (this.gone === undefined) {
      // In one line, as the last one is told; it may quote what was said.
      this.errors = "";
      const why = error.message.replace(/\s+/g, " ").slice(0, keptReason);
      this.said(`\n${broken} ${why}\n`);
      this.child.kill();
    }
  }

  private async greet(params: InitializeParams): Promise<InitializeResult> {
    const server = await this.request("initialize", params);
    if (server.protocolVersion !== protocolVersion) {
      throw new ServiceError(
        `The program caisson ${server.serverInfo.version} speaks version ${server.protocolVersion} of the protocol, and this extension version ${protocolVersion}.`,
        { kind: "protocolMismatch", hint: "Update whichever of the two is older." },
      );
    }
    this.encoder.longest = server.capabilities.maxMessageBytes;
    this.notify("initialized", {});
    return server;
  }

  /** Sends a request and gives its result; every failure is a ServiceError. */
  async request<M extends keyof ClientRequests>(
    method: M,
    params: ClientRequests[M]["params"],
    options: RequestOptions = {},
  ): Promise<ClientRequests[M]["result"]> {
    let listening: Disposable | undefined;
    let sent: ClientRequests[M]["params"] = params;
    const progress = options.progress;
    if (progress !== undefined) {
      const token = `w${++this.nextToken}`;
      sent = { ...(params as object), workDoneToken: token } as ClientRequests[M]["params"];
      listening = this.onNotification("$/progress", (p) => {
        if (p.token === token) {
          progress(p.value);
        }
      });
    }
    const answered = this.vigil.wait();
    try {
      return await this.rpc.sendRequest<ClientRequests[M]["result"]>(
        method,
        sent,
        options.token ?? CancellationToken.None,
      );
    } catch (thrown) {
      const unsent = thrown instanceof ResponseError && this.encoder.refused(thrown.message);
      if (unsent) {
        throw unsent;
      }
      const end = this.gone ?? (isAnswer(thrown) ? undefined : await this.endSoon());
      throw end === undefined ? asServiceError(thrown) : unanswered(method, end);
    } finally {
      answered();
      listening?.dispose();
    }
  }

  /** The end of a service whose streams are closed already, which comes a moment later. */
  private async endSoon(): Promise<End | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), closingBudget);
    });
    try {
      return await Promise.race([this.ended, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends a notification. A service that is gone does not hear it. */
  notify<M extends keyof ClientNotifications>(method: M, params: ClientNotifications[M]): void {
    void this.rpc.sendNotification(method, params).catch(() => undefined);
  }

  /** Registers one of any number of listeners of a notification. */
  onNotification<M extends keyof ServerNotifications>(
    method: M,
    listener: (params: ServerNotifications[M]) => void,
  ): Disposable {
    let emitter = this.notified.get(method) as Emitter<ServerNotifications[M]> | undefined;
    if (emitter === undefined) {
      const made = new Emitter<ServerNotifications[M]>();
      // The library keeps one handler of a method alone: the last one.
      this.rpc.onNotification(method, (params: ServerNotifications[M]) => made.fire(params));
      this.notified.set(method, made as Emitter<unknown>);
      emitter = made;
    }
    return emitter.event(listener);
  }

  /** Registers the one handler of a request that the service makes. */
  onRequest<M extends keyof ServerRequests>(
    method: M,
    handler: (
      params: ServerRequests[M]["params"],
      token: CancellationToken,
    ) => Promise<ServerRequests[M]["result"]>,
  ): Disposable {
    return this.rpc.onRequest<unknown, unknown>(
      method,
      (params: ServerRequests[M]["params"], token: CancellationToken) => handler(params, token),
    );
  }

  /**
   * Ends the service in order: its environments live on as their profiles say. After
   * the budget, in ms, it is killed.
   */
  async stop(budget = this.vigil.silent ? refusedBudget : shutdownBudget): Promise<End> {
    if (this.gone !== undefined) {
      return this.gone;
    }
    const kill = () => this.child.kill();
    const timer = setTimeout(kill, budget);
    const lifeless = setTimeout(kill, Math.min(budget, lifeBudget));
    this.child.stdout.once("data", () => clearTimeout(lifeless));
    void this.askForLife();
    try {
      await Promise.race([this.sayShutdown(), this.ended]);
      if (this.gone === undefined) {
        this.child.stdin.end();
      }
      return await this.ended;
    } finally {
      clearTimeout(timer);
      clearTimeout(lifeless);
    }
  }

  /** Asks for a sign of life, which is any answer. Where none can come its end tells the rest. */
  private async askForLife(): Promise<void> {
    try {
      await this.rpc.sendRequest(signOfLife);
    } catch {
      // The answer is that there is no such method.
    }
  }

  /** Asks the service to end. One whose streams are closed is ending already. */
  private async sayShutdown(): Promise<void> {
    try {
      await this.rpc.sendRequest("shutdown").catch(() => undefined);
      // Written before the end of the stream: a message is not, when it is only sent.
      await this.rpc.sendNotification("exit");
    } catch {
      // The end of the program tells the rest.
    }
  }
}

/** Whether the service said it, and not the end of its streams. */
function isAnswer(thrown: unknown): boolean {
  return (
    thrown instanceof ResponseError &&
    thrown.code !== ErrorCodes.MessageWriteError &&
    thrown.code !== ErrorCodes.PendingResponseRejected &&
    thrown.code !== ErrorCodes.ConnectionInactive
  );
}

/** What the service answered as an error, with what it said beside the message. */
function asServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ResponseError) {
    const data: unknown = thrown.data;
    return new ServiceError(thrown.message, isErrorData(data) ? data : {}, { cause: thrown });
  }
  return serviceError(thrown);
}

/** The error of a request that a service left without an answer. */
function unanswered(method: string, end: End): ServiceError {
  return new ServiceError(`The program caisson ended before it answered${lastWords(end)}`, {
    hint: "Show the doctor's report, or look into the log.",
    // Nothing was asked of it before this one.
    outcomeUnknown: method !== "initialize",
  });
}
