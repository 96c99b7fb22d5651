import type { Connection } from "../service/connection.js";
import { type Disposable, Emitter } from "../service/emitter.js";
import type { Service } from "../service/service.js";

/** The profile that there is without any configuration: its problem is the file's. */
const always = "local";

/** Whether the user's configuration file can be used, as the service sees it. */
export class Configuration implements Disposable {
  private readonly changed = new Emitter<string>();
  private readonly started: Disposable;
  private wrong = "";
  /** How often it was told what is wrong, or that nothing is. */
  private tellings = 0;

  constructor(service: Service) {
    this.started = service.onDidStart((connection) => {
      // A connection that is gone already is followed by one that asks again.
      this.ask(connection).catch(() => undefined);
    });
  }

  /** What is wrong with the file; "" when nothing is. */
  get problem(): string {
    return this.wrong;
  }

  /** Fires when the problem is another one, with the one before; "" was none. */
  readonly onDidChange = this.changed.event;

  /** Registers what a new connection tells of the file. */
  listen(connection: Connection): void {
    connection.onNotification("config/changed", ({ problem }) => {
      this.tellings++;
      this.become(problem ?? "");
    });
  }

  dispose(): void {
    this.started.dispose();
    this.changed.dispose();
  }

  private async ask(connection: Connection): Promise<void> {
    const before = ++this.tellings;
    const { profiles } = await connection.request("profile/list", {});
    if (this.tellings !== before) {
      return; // what was told in the meantime, or another service says, is newer
    }
    this.become(profiles.find(({ name }) => name === always)?.problem ?? "");
  }

  private become(problem: string): void {
    const before = this.wrong;
    if (problem !== before) {
      this.wrong = problem;
      this.changed.fire(before);
    }
  }
}
