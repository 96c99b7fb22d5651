import type { ClientRequests, InitializeParams } from "@caisson/protocol";
import type { Child, Launch } from "./child.js";
import type { Connection, RequestOptions } from "./connection.js";
import { type Disposable, Emitter } from "./emitter.js";
import { lastWords } from "./end.js";
import { ServiceError, serviceError } from "./errors.js";
import type { Program } from "./locate.js";
import { silence } from "./vigil.js";

/**
 * How long after each crash in a row the service is started again, in ms. After the
 * last it stays down until somebody needs it.
 */
const backoff = [200, 1_000, 5_000, 15_000];

/** A service that ran so long had no trouble starting, in ms. */
const steady = 60_000;

/** Whether there is a service. */
export type ServiceState =
  | { is: "stopped" }
  | { is: "starting" }
  | { is: "running"; program: Program; version: string }
  | { is: "silent"; error: ServiceError }
  | { is: "waiting"; error: ServiceError; retryInMs: number }
  | { is: "failed"; error: ServiceError };

/** What a Service works with. */
export interface ServiceOptions {
  /** Finds the program; asked anew at every start. */
  locate: () => Promise<Program>;
  launch: Launch;
  /** What the program gets behind "serve". */
  args: () => readonly string[];
  /** How the service is greeted. */
  initialize: () => InitializeParams;
  /** Registers what a new connection is listened to for. */
  listen: (connection: Connection) => void;
  /** Is told each line for the log. */
  log: (line: string) => void;
  now?: () => number;
}

/**
 * The service of this window: started at the first need, again after a crash, and
 * stopped with the window.
 */
export class Service implements Disposable {
  private readonly changed = new Emitter<ServiceState>();
  private readonly began = new Emitter<Connection>();
  private readonly gaveUp = new Emitter<ServiceError>();
  private readonly fellSilent = new Emitter<ServiceError>();
  private current: ServiceState = { is: "stopped" };
  private starting: Promise<Connection> | undefined;
  private stopping: Promise<void> | undefined;
  private connection: Connection | undefined;
  /** The programs that were started and are not gone yet. */
  private readonly programs = new Set<Promise<unknown>>();
  /** The program that is greeted now. */
  private greeted: Child | undefined;
  /** Ends the waiting time after a crash, and the start that was to follow it. */
  private cancelRetry: (() => void) | undefined;
  private crashes = 0;
  private over = false;

  constructor(private readonly options: ServiceOptions) {}

  /** Fires when the state is another one. */
  readonly onDidChange = this.changed.event;

  /** Fires with each new connection, when the service can be asked. */
  readonly onDidStart = this.began.event;

  /** Fires when the service is gone and is not started again before somebody needs it. */
  readonly onDidGiveUp = this.gaveUp.event;

  /** Fires when the service runs and does not answer: whether to end it a person decides. */
  readonly onDidFallSilent = this.fellSilent.event;

  get state(): ServiceState {
    return this.current;
  }

  /** The connection, if there is one now: nothing is started. */
  get running(): Connection | undefined {
    return this.connection;
  }

  /**
   * Gives the connection, starting the service when there is none. After a crash it waits
   * as the start does: what is needed time and again must not start it without a pause.
   */
  async ensure(): Promise<Connection> {
    if (this.over) {
      throw closing();
    }
    if (this.connection !== undefined && this.stopping === undefined) {
      return this.connection;
    }
    return this.starting ?? this.begin(this.start());
  }

  /** Lets everybody who needs the service wait for that start. */
  private begin(start: Promise<Connection>): Promise<Connection> {
    this.starting = start.finally(() => {
      this.starting = undefined;
    });
    return this.starting;
  }

  /** Asks the service, which is started for it if need be. */
  async request<M extends keyof ClientRequests>(
    method: M,
    params: ClientRequests[M]["params"],
    options: RequestOptions = {},
  ): Promise<ClientRequests[M]["result"]> {
    return (await this.ensure()).request(method, params, options);
  }

  /** Stops the service and starts it again. */
  async restart(): Promise<void> {
    await this.stop();
    this.crashes = 0;
    await this.ensure();
  }

  /** Stops the service, if there is one, and waits until it is gone. */
  stop(): Promise<void> {
    this.stopping ??= this.end().finally(() => {
      this.stopping = undefined;
    });
    return this.stopping;
  }

  private async end(): Promise<void> {
    this.cancelRetry?.();
    // It has done nothing yet, and one that is no service may take long to show it.
    this.greeted?.kill();
    await this.starting?.catch(() => undefined);
    const connection = this.connection;
    this.connection = undefined;
    await connection?.stop();
    // One that was not taken may be about to end.
    await Promise.all(this.programs);
    this.become({ is: "stopped" });
  }

  dispose(): void {
    this.over = true;
    void this.stop();
    this.changed.dispose();
    this.began.dispose();
    this.gaveUp.dispose();
    this.fellSilent.dispose();
  }

  private async start(): Promise<Connection> {
    // One that is about to end still holds its sessions.
    await this.stopping;
    if (this.over) {
      throw closing();
    }
    this.become({ is: "starting" });
    try {
      const program = await this.options.locate();
      // What speaks with it is loaded at the first need: a window may have none.
      const { Connection } = await import("./connection.js");
      this.options.log(`starting ${program.path} (from ${program.from})`);
      const child = this.options.launch(program.path, ["serve", ...this.options.args()]);
      this.programs.add(child.ended);
      void child.ended.then(() => this.programs.delete(child.ended));
      this.greeted = child;
      const connection = await Connection.start(
        child,
        this.options.initialize(),
        this.options.listen,
      ).finally(() => {
        this.greeted = undefined;
      });
      this.connection = connection;
      const version = connection.server.serverInfo.version;
      const running: ServiceState = { is: "running", program, version };
      this.become(running);
      this.watch(connection);
      connection.onSilence((silent) => this.silent(connection, silent, running));
      this.began.fire(connection);
      return connection;
    } catch (thrown) {
      const error = this.stopping === undefined ? serviceError(thrown) : stopped();
      this.become({ is: "failed", error });
      throw error;
    }
  }

  /** Starts the service again when it ends without having been told to. */
  private watch(connection: Connection): void {
    const now = this.options.now ?? Date.now;
    const since = now();
    void connection.ended.then((end) => {
      if (this.connection !== connection) {
        return;
      }
      this.connection = undefined;
      if (now() - since > steady) {
        this.crashes = 0;
      }
      const error = new ServiceError(`The program caisson ended unexpectedly${lastWords(end)}`, {
        hint: "Look into the log.",
      });
      this.options.log(error.message);
      const wait = backoff[this.crashes++];
      if (this.over || wait === undefined) {
        this.become({ is: "failed", error });
        this.gaveUp.fire(error);
        return;
      }
      this.become({ is: "waiting", error, retryInMs: wait });
      this.begin(this.startIn(wait)).catch((thrown) => {
        const failure = serviceError(thrown);
        if (!failure.cancelled) {
          this.gaveUp.fire(failure);
        }
      });
    });
  }

  /** Starts the service after that time, in ms, unless it is stopped before. */
  private async startIn(wait: number): Promise<Connection> {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, wait);
      this.cancelRetry = () => {
        clearTimeout(timer);
        reject(stopped());
      };
    });
    return this.start();
  }

  /** Tells of a service that does not answer; one that answers again is as it was. */
  private silent(connection: Connection, silent: boolean, running: ServiceState): void {
    if (this.connection !== connection) {
      return; // it is about to end
    }
    if (!silent) {
      this.options.log("the program caisson answers again");
      this.become(running);
      return;
    }
    const error = new ServiceError(
      `The program caisson runs, and has not answered for ${silence} s.`,
      { hint: "Wait for it, or restart the service: what it started goes on." },
    );
    this.options.log(error.message);
    this.become({ is: "silent", error });
    this.fellSilent.fire(error);
  }

  private become(state: ServiceState): void {
    this.current = state;
    this.changed.fire(state);
  }
}

function stopped(): ServiceError {
  return new ServiceError("The service was stopped.", { kind: "cancelled" });
}

function closing(): ServiceError {
  return new ServiceError("The window is closing.", { kind: "cancelled" });
}
