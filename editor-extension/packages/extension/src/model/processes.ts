import type { Process, ProcessEventParams } from "@caisson/protocol";
import type { Connection } from "../service/connection.js";
import { type Disposable, Emitter } from "../service/emitter.js";
import type { Service } from "../service/service.js";
import { replaced } from "./replaced.js";
import type { Sessions } from "./sessions.js";
import { Told } from "./told.js";

/** Whether a process still runs. */
export function isAlive(process: Process): boolean {
  return ["starting", "running", "stopping"].includes(process.status);
}

/** A question for the processes of a session. */
interface Asked {
  connection: Connection;
  told: Told<Process>;
}

/** The processes of the sessions that are open in this window. */
export class Processes implements Disposable {
  private readonly all = new Map<string, Process>();
  /** What is being asked for, by session. */
  private readonly asked = new Map<string, Asked>();
  private readonly changed = new Emitter<void>();
  private readonly event = new Emitter<ProcessEventParams>();
  private readonly disposables: Disposable[] = [];

  constructor(
    private readonly service: Service,
    private readonly sessions: Sessions,
  ) {
    this.disposables.push(
      sessions.onDidOpen(({ session, resumed }) => {
        // Asking makes the environment: of a new session nobody has to know of none.
        if (resumed || session.state === "ready") {
          void this.refresh(session.id);
        }
      }),
      service.onDidChange((state) => {
        // What a service that is gone said of a process may no longer be true.
        if (state.is === "waiting" || state.is === "failed" || state.is === "stopped") {
          this.all.clear();
          this.changed.fire();
        }
      }),
    );
  }

  /** Fires when the list is another one. */
  readonly onDidChange = this.changed.event;

  /** Fires with each event of a process, after the list has it. */
  readonly onEvent = this.event.event;

  /** A session's processes: those that run, then the others, the newest first. */
  ofSession(sessionId: string): Process[] {
    return [...this.all.values()]
      .filter((p) => p.sessionId === sessionId)
      .sort(
        (a, b) => Number(isAlive(b)) - Number(isAlive(a)) || b.startedAt.localeCompare(a.startedAt),
      );
  }

  get(id: string): Process | undefined {
    return this.all.get(id);
  }

  /** Whether anything runs. */
  get active(): boolean {
    return [...this.all.values()].some(isAlive);
  }

  /** Asks the service for a session's processes, unless it is being asked already. */
  async refresh(sessionId: string): Promise<void> {
    const connection = this.service.running;
    if (connection === undefined || this.asked.get(sessionId)?.connection === connection) {
      return;
    }
    const asked = { connection, told: new Told<Process>(({ id }) => id) };
    this.asked.set(sessionId, asked);
    try {
      await this.ask(asked, sessionId);
    } catch {
      // A session that is not open, or a service that is gone, tells itself what is wrong.
    } finally {
      if (this.asked.get(sessionId) === asked) {
        this.asked.delete(sessionId);
      }
    }
  }

  private async ask({ connection, told }: Asked, sessionId: string): Promise<void> {
    const listed = await told.list(
      async () => (await connection.request("process/list", { sessionId })).processes,
    );
    if (listed === undefined || this.service.running !== connection) {
      return; // another one knows better, or will
    }
    for (const known of this.ofSession(sessionId)) {
      if (!listed.has(known.id)) {
        this.all.delete(known.id);
      }
    }
    for (const process of listed.values()) {
      this.keep(process);
    }
    this.changed.fire();
  }

  async stop(process: Process): Promise<void> {
    const service = await this.sessions.ready();
    const { process: now } = await service.request("process/stop", idOf(process));
    this.answered(now);
  }

  async signal(process: Process, signal: string): Promise<void> {
    const service = await this.sessions.ready();
    const params = { ...idOf(process), signal };
    const { process: now } = await service.request("process/signal", params);
    this.answered(now);
  }

  /** Takes what an answer says of a process, whose end may have been told in the meantime. */
  private answered(now: Process): void {
    const known = this.all.get(now.id);
    if (known === undefined || isAlive(known) || !isAlive(now)) {
      this.put(now);
    }
  }

  /** Registers what a new connection tells of processes. */
  listen(connection: Connection): void {
    connection.onNotification("process/event", (event) => {
      this.put(event.process);
      this.event.fire(event);
    });
  }

  dispose(): void {
    for (const d of this.disposables) {
      d.dispose();
    }
    this.changed.dispose();
    this.event.dispose();
  }

  private put(process: Process): void {
    this.asked.get(process.sessionId)?.told.tell(process.id, process);
    this.keep(process);
    this.changed.fire();
  }

  /** A process stays the same object as long as it is known: a list can show it anew alone. */
  private keep(process: Process): void {
    this.all.set(process.id, replaced(this.all.get(process.id) ?? { ...process }, process));
  }
}

/** The parameters that name a process. */
export function idOf(process: Process): { sessionId: string; processId: string } {
  return { sessionId: process.sessionId, processId: process.id };
}
