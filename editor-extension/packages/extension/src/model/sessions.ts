import type { ProgressValue, Session } from "@caisson/protocol";
import type { CancellationToken } from "vscode-jsonrpc";
import type { Connection } from "../service/connection.js";
import { type Disposable, Emitter } from "../service/emitter.js";
import { ServiceError, serviceError } from "../service/errors.js";
import type { Service } from "../service/service.js";
import type { Memory } from "./memory.js";
import { Told } from "./told.js";

/** Where Memory keeps which session each folder of the window uses. */
const rememberedKey = "caisson.sessions";

/** Where Memory keeps which sessions had an environment in the window. */
const heldKey = "caisson.open";

/** How often a session is taken up that its other owner seems to give up just then. */
const takeUpAttempts = 3;

/**
 * How long a session that its owner gives up is left to it, in ms: a window that is
 * reloaded, or whose service crashed, comes back for it.
 */
const leftToOwner = 10_000;

/** A session of a folder as it is remembered: enough to show before anything runs. */
export interface Remembered {
  id: string;
  profile: string;
  backend: string;
}

/** A session that was opened. */
export interface Opened {
  session: Session;
  /** Whether it existed, perhaps with processes that run. */
  resumed: boolean;
}

/** How a session is opened. */
export interface OpenOptions {
  /** The profile of a new session; missing is the configured default. */
  profile?: string;
  /** Whether to make the environment now, and not at the first use. */
  connect?: boolean;
  token?: CancellationToken | undefined;
  progress?: ((value: ProgressValue) => void) | undefined;
}

/**
 * The sessions that the service knows, and which of them each folder of this window
 * uses. A folder's session is resumed by its id when the service or the window comes
 * back; it never changes to another profile.
 */
export class Sessions implements Disposable {
  private readonly all = new Map<string, Session>();
  private readonly news = new Told<Session>(({ id }) => id);
  private readonly opening = new Map<string, Promise<Session>>();
  private readonly changed = new Emitter<Session | undefined>();
  private readonly opened = new Emitter<Opened>();
  private readonly disposables: Disposable[] = [];
  private readonly remembered: Record<string, Remembered>;
  /** The sessions that had an environment in this window, by id: its folders' and others. */
  private readonly held: Set<string>;
  /** The sessions that somebody in this window is ending or has ended, by id. */
  private readonly endings = new Map<string, "closed" | "deleted">();
  /** The sessions that are open in the service that runs now, by id. */
  private readonly taken = new Set<string>();
  /** The sessions of this window that another owner gave up, by id, with what ends the wait for it. */
  private readonly freed = new Map<string, NodeJS.Timeout>();
  private resuming: Promise<void> = Promise.resolve();

  constructor(
    private readonly service: Service,
    private readonly memory: Memory,
    /** The folders that the window has now. */
    private readonly folders: () => readonly string[],
  ) {
    this.remembered = { ...memory.get<Record<string, Remembered>>(rememberedKey) };
    this.held = new Set(memory.get<string[]>(heldKey) ?? []);
    this.disposables.push(
      service.onDidStart((connection) => {
        this.resuming = this.resume(connection);
      }),
    );
  }

  /** Fires when a session changed or, with undefined, when several may have. */
  readonly onDidChange = this.changed.event;

  /** Fires when a session was opened or resumed in the service that runs now. */
  readonly onDidOpen = this.opened.event;

  /** Every session, the one used last first. */
  list(): Session[] {
    return [...this.all.values()].sort((a, b) => b.lastUsedAt.localeCompare(a.lastUsedAt));
  }

  get(id: string): Session | undefined {
    return this.all.get(id);
  }

  /** The session that the folder uses, as far as the running service told of it. */
  ofFolder(folder: string): Session | undefined {
    const remembered = this.remembered[folder];
    return remembered === undefined ? undefined : this.all.get(remembered.id);
  }

  /** What is known of the folder's session before any service runs. */
  rememberedOf(folder: string): Remembered | undefined {
    return this.remembered[folder];
  }

  /**
   * Waits until a service runs that has the sessions of this window open again: a
   * call just after a crash finds its session. Gives the connection to that service.
   */
  async ready(): Promise<Connection> {
    const connection = await this.service.ensure();
    await this.resuming;
    return connection;
  }

  /** Whether a folder that the window has now uses the session. */
  isUsed(id: string): boolean {
    return this.used().includes(id);
  }

  private used(): string[] {
    return this.folders().flatMap((folder) => this.remembered[folder]?.id ?? []);
  }

  /**
   * The window has other folders now: a session is here with its folder, and one of a
   * folder that came is taken up.
   */
  foldersChanged(): void {
    const connection = this.service.running;
    if (connection !== undefined) {
      this.resuming = this.resuming.then(() => this.takeUpAll(connection, this.used()));
    }
    this.changed.fire(undefined);
  }

  /**
   * Gives the folder's session, opening one on the default profile when it has none.
   * Callers at the same time get the same one.
   */
  async forFolder(folder: string, options: OpenOptions = {}): Promise<Session> {
    const under = this.opening.get(folder);
    if (under !== undefined) {
      const session = await under.catch((thrown) => {
        // Whoever asked first has given up, and nobody else.
        if (serviceError(thrown).cancelled && options.token?.isCancellationRequested !== true) {
          return this.forFolder(folder, options);
        }
        throw thrown;
      });
      return options.connect === false ? session : this.connected(session, options);
    }
    const work = this.openOrResume(folder, options).finally(() => this.opening.delete(folder));
    this.opening.set(folder, work);
    return work;
  }

  private async openOrResume(folder: string, options: OpenOptions): Promise<Session> {
    await this.ready();
    const session = this.ofFolder(folder);
    if (session === undefined || session.state === "closed") {
      return this.openNew(folder, options);
    }
    if (options.connect === false && this.freed.has(session.id)) {
      await this.takeUpFreed([session.id]);
      return this.all.get(session.id) ?? session;
    }
    return options.connect === false ? session : this.connected(session, options);
  }

  /** Gives the session of that id, with its environment, and no other one in its place. */
  async open(id: string, options: OpenOptions = {}): Promise<Session> {
    await this.ready();
    const session = this.all.get(id);
    if (session === undefined || session.state === "closed") {
      throw new ServiceError("The session was closed or deleted in the meantime.", {
        kind: "sessionNotFound",
        hint: "Call it again: the folder has another session by then.",
      });
    }
    return this.connected(session, options);
  }

  /** How this window ended the session, or is ending it: what it still said is no failure. */
  endOf(id: string): "closed" | "deleted" | undefined {
    return this.endings.get(id);
  }

  private async connected(session: Session, options: OpenOptions): Promise<Session> {
    const now = this.all.get(session.id) ?? session;
    return now.state === "ready" ? now : this.reopen(now, options);
  }

  /** Opens a new session for the folder, which uses it from now on. */
  async openNew(folder: string, options: OpenOptions = {}): Promise<Session> {
    const params = {
      workspace: folder,
      ...(options.profile === undefined ? {} : { profile: options.profile }),
      connect: options.connect ?? true,
    };
    try {
      const { token, progress } = options;
      const { session } = await this.service.request("session/open", params, { token, progress });
      this.use(folder, session);
      return session;
    } catch (thrown) {
      // The service told of the session while it tried, and has forgotten it.
      const { running } = this.service;
      await (running && this.loadFrom(running))?.catch(() => undefined);
      throw thrown;
    }
  }

  /** Opens a session that exists, with its environment. */
  async reopen(session: Session, options: OpenOptions = {}): Promise<Session> {
    const result = await this.service.request(
      "session/open",
      { sessionId: session.id, workspace: session.workspace, connect: options.connect ?? true },
      { token: options.token, progress: options.progress },
    );
    this.endings.delete(session.id);
    this.waitNoMore(session.id);
    this.taken.add(session.id);
    this.put(result.session);
    this.opened.fire({ session: result.session, resumed: true });
    return result.session;
  }

  /** Lets the folder use the session from now on. */
  use(folder: string, session: Session): void {
    this.remembered[folder] = {
      id: session.id,
      profile: session.profile,
      backend: session.backend,
    };
    void this.memory.update(rememberedKey, this.remembered);
    this.taken.add(session.id);
    this.put(session);
    this.opened.fire({ session, resumed: false });
  }

  /** Makes a session of the same profile, with an environment of its own. */
  async fork(id: string, options: OpenOptions = {}): Promise<Session> {
    const { session } = await this.service.request(
      "session/fork",
      { sessionId: id },
      { token: options.token, progress: options.progress },
    );
    this.put(session);
    this.opened.fire({ session, resumed: false });
    return session;
  }

  /** Closes a session: its processes end; its profile says what is kept. */
  async close(id: string): Promise<void> {
    const params = { sessionId: id };
    const { session } = await this.ending(id, "closed", () =>
      this.service.request("session/close", params),
    );
    this.release(id);
    this.put(session);
  }

  /** Removes a session and its environment. Gives what may be left there. */
  async delete(id: string, force = false): Promise<string | undefined> {
    const params = { sessionId: id, force };
    const { left } = await this.ending(id, "deleted", () =>
      this.service.request("session/delete", params),
    );
    this.drop(id); // the service has told it, unless it is an old one
    return left;
  }

  private async ending<T>(
    id: string,
    how: "closed" | "deleted",
    work: () => Promise<T>,
  ): Promise<T> {
    this.endings.set(id, how);
    try {
      return await work();
    } catch (thrown) {
      this.endings.delete(id);
      throw thrown;
    }
  }

  dispose(): void {
    for (const d of this.disposables) {
      d.dispose();
    }
    this.waitNoMore(...this.freed.keys());
    this.changed.dispose();
    this.opened.dispose();
  }

  /** Registers what a new connection tells of sessions. */
  listen(connection: Connection): void {
    connection.onNotification("session/changed", ({ session }) => this.told(connection, session));
    connection.onNotification("session/removed", ({ sessionId }) => this.drop(sessionId));
  }

  /** Takes what the service tells of a session, which may be another window's. */
  private told(connection: Connection, session: Session): void {
    const waited = this.all.get(session.id)?.heldBy !== undefined;
    if (session.heldBy !== undefined) {
      this.taken.delete(session.id);
    }
    // One that failed, perhaps as it was closed, nobody takes up but who needs it.
    const free =
      session.heldBy === undefined && session.state !== "failed" && session.state !== "closed";
    if (!free) {
      this.waitNoMore(session.id);
    } else if (waited && this.isUsed(session.id) && this.service.running === connection) {
      const take = () => void this.takeUpFreed([session.id]);
      this.freed.set(session.id, setTimeout(take, leftToOwner));
    }
    this.put(session);
  }

  /** Whether its other owner gave the session up and this window has not taken it up yet. */
  isFreed(id: string): boolean {
    return this.freed.has(id);
  }

  /**
   * Takes up what other owners gave up, which is this window's again: after a time, or
   * before that when somebody is at this window and not at another one.
   */
  takeUpFreed(ids: string[] = [...this.freed.keys()]): Promise<void> {
    const freed = ids.filter((id) => this.freed.has(id));
    this.waitNoMore(...freed);
    const connection = this.service.running;
    if (connection !== undefined && freed.length > 0) {
      this.resuming = this.resuming.then(() => this.takeUpAll(connection, freed));
    }
    return this.resuming;
  }

  private waitNoMore(...ids: string[]): void {
    for (const id of ids) {
      clearTimeout(this.freed.get(id));
      this.freed.delete(id);
    }
  }

  /** There is no such session any more, whoever deleted it. */
  private drop(id: string): void {
    this.waitNoMore(id);
    this.news.tell(id, undefined);
    if (this.all.delete(id)) {
      this.taken.delete(id);
      this.release(id);
      this.forget(id);
      this.changed.fire(undefined);
    }
  }

  /** Asks the service for all sessions, starting it if need be. */
  async load(): Promise<void> {
    await this.loadFrom(await this.service.ensure());
  }

  private async loadFrom(connection: Connection): Promise<void> {
    const listed = await this.news.list(
      async () => (await connection.request("session/list", {})).sessions,
    );
    if (listed === undefined || this.service.running !== connection) {
      return; // another one knows better, or will
    }
    this.all.clear();
    for (const [id, session] of listed) {
      this.all.set(id, session);
    }
    this.changed.fire(undefined);
  }

  /** Asks a new service for everything, and takes up the sessions of this window. */
  private async resume(connection: Connection): Promise<void> {
    this.taken.clear();
    this.waitNoMore(...this.freed.keys());
    try {
      await this.loadFrom(connection);
    } catch {
      return; // The connection is gone: the next one asks again.
    }
    await this.takeUpAll(connection, [...this.used(), ...this.held]);
  }

  private async takeUpAll(connection: Connection, ids: string[]): Promise<void> {
    for (const id of new Set(ids)) {
      const session = this.all.get(id);
      if (this.taken.has(id) || this.service.running !== connection) {
        continue;
      }
      if (session !== undefined && session.state !== "closed") {
        await this.takeUp(connection, session);
        continue;
      }
      this.release(id);
      if (session === undefined) {
        this.forget(id);
      }
    }
  }

  /**
   * Opens a session of this window without its environment, which the first use
   * connects: so its processes can be listed, and nothing is made by a mere look.
   */
  private async takeUp(
    connection: Connection,
    session: Session,
    attempts = takeUpAttempts,
  ): Promise<void> {
    try {
      const result = await connection.request("session/open", {
        sessionId: session.id,
        workspace: session.workspace,
        connect: false,
      });
      this.taken.add(session.id);
      this.put(result.session);
      this.opened.fire({ session: result.session, resumed: true });
    } catch (thrown) {
      const { message, hint, kind } = serviceError(thrown);
      if (!this.isUsed(session.id)) {
        // Another window may have it by now.
        this.release(session.id);
        return;
      }
      if (kind === "sessionBusy") {
        const now = await this.lookAt(connection, session.id);
        if (now?.heldBy !== undefined) {
          this.put(now); // which says who has it; it is told when that is over
          return;
        }
        if (now !== undefined && attempts > 1) {
          return this.takeUp(connection, now, attempts - 1); // it was given up just now
        }
      }
      this.put({
        ...session,
        state: "failed",
        error: {
          kind: kind ?? "internal",
          message,
          ...(hint === undefined ? {} : { hint }),
        },
      });
    }
  }

  private async lookAt(connection: Connection, sessionId: string): Promise<Session | undefined> {
    try {
      return (await connection.request("session/get", { sessionId })).session;
    } catch {
      return undefined; // The error before says what is wrong.
    }
  }

  private put(session: Session): void {
    if (session.state === "ready") {
      this.hold(session.id);
    }
    this.news.tell(session.id, session);
    this.all.set(session.id, session);
    this.changed.fire(session);
  }

  private hold(id: string): void {
    if (!this.held.has(id)) {
      this.held.add(id);
      void this.memory.update(heldKey, [...this.held]);
    }
  }

  private release(id: string): void {
    if (this.held.delete(id)) {
      void this.memory.update(heldKey, [...this.held]);
    }
  }

  private forget(id: string): void {
    for (const [folder, remembered] of Object.entries(this.remembered)) {
      if (remembered.id === id) {
        delete this.remembered[folder];
      }
    }
    void this.memory.update(rememberedKey, this.remembered);
  }
}
