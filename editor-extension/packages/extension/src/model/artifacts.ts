import type { Artifact, ArtifactPublished, ClientRequests } from "@caisson/protocol";
import type { Connection } from "../service/connection.js";
import { type Disposable, Emitter } from "../service/emitter.js";
import { ServiceError, serviceError } from "../service/errors.js";
import type { Service } from "../service/service.js";
import { name } from "./shown.js";
import { Told } from "./told.js";

/** How many bytes one read of an artifact asks for. */
const chunk = 8 << 20;

/**
 * How much longer than a list takes the next one is waited for, when changes go on: however
 * long the list is and however often it changes, asking takes a small part of the time.
 */
const share = 10;

/** The longest such wait, in ms: a list that took long once is followed all the same. */
const longestPause = 30_000;

type ArtifactMethod = "artifact/preview" | "artifact/read" | "artifact/save" | "artifact/delete";

/** How an artifact is looked at: as rendered, as an image, as text, or as its bytes. */
export type View = "markdown" | "image" | "text" | "hex";

/** What the sessions published. */
export class Artifacts implements Disposable {
  private readonly all = new Map<string, Artifact>();
  private readonly told = new Told<Artifact>(({ uri }) => uri);
  private readonly changed = new Emitter<void>();
  private readonly published = new Emitter<ArtifactPublished>();
  private readonly started: Disposable;
  /** The connection whose list is being followed, and whether it changed again since. */
  private followed: Connection | undefined;
  private behind = false;
  /** Ends the pause between two lists. */
  private wake: () => void = () => undefined;

  constructor(private readonly service: Service) {
    this.started = service.onDidStart((connection) => {
      this.wake();
      // A connection that is gone already is followed by one that asks again.
      this.loadFrom(connection).catch(() => undefined);
    });
  }

  /** Fires when the list is another one. */
  readonly onDidChange = this.changed.event;

  /** Fires with each new artifact, after the list has it. */
  readonly onDidPublish = this.published.event;

  /** All artifacts, the newest first. */
  list(): Artifact[] {
    return [...this.all.values()].sort((a, b) => b.createdAt.localeCompare(a.createdAt));
  }

  ofSession(sessionId: string): Artifact[] {
    return this.list().filter((a) => a.sessionId === sessionId);
  }

  /** The publication of that uri. */
  get(uri: string): Artifact | undefined {
    return this.all.get(uri);
  }

  /**
   * How the artifact is looked at. What its bytes are the content says, which several
   * publications may have; which sort of text they are, its own name.
   */
  async viewOf(artifact: Artifact): Promise<View> {
    const { kind } = await this.ask(artifact, "artifact/preview", {
      id: artifact.id,
      maxBytes: 1,
    });
    switch (kind) {
      case "binary":
        return "hex";
      case "image":
        return "image";
      default:
        return artifact.mediaType === "text/markdown" ? "markdown" : "text";
    }
  }

  /** The content, or its beginning. */
  async read(artifact: Artifact, atMost = artifact.size): Promise<Uint8Array> {
    const content = Buffer.alloc(Math.min(atMost, artifact.size));
    let offset = 0;
    for (let eof = false; !eof && offset < content.length; ) {
      const piece = await this.ask(artifact, "artifact/read", {
        id: artifact.id,
        offset,
        length: Math.min(chunk, content.length - offset),
      });
      const copied = Buffer.from(piece.data, "base64").copy(content, offset);
      offset += copied;
      eof = piece.eof || copied === 0;
    }
    return content.subarray(0, offset);
  }

  /** Writes the content to a file of the machine that the service runs on. */
  async save(artifact: Artifact, path: string): Promise<void> {
    // The editor's dialog has asked already whether to replace a file.
    await this.ask(artifact, "artifact/save", { id: artifact.id, path, overwrite: true });
  }

  async delete(artifact: Artifact): Promise<void> {
    await this.ask(artifact, "artifact/delete", { uri: artifact.uri });
    this.told.tell(artifact.uri, undefined);
    this.all.delete(artifact.uri);
    this.changed.fire();
  }

  /** Asks for something of an artifact. One that another window deleted leaves the list. */
  private async ask<M extends ArtifactMethod>(
    artifact: Artifact,
    method: M,
    params: ClientRequests[M]["params"],
  ): Promise<ClientRequests[M]["result"]> {
    try {
      return await this.service.request(method, params);
    } catch (thrown) {
      const { kind } = serviceError(thrown);
      if (kind !== "artifactNotFound") {
        throw thrown;
      }
      if (this.service.running !== undefined) {
        this.loadFrom(this.service.running).catch(() => undefined);
      }
      const gone = `The artifact ${name(artifact.name)} was deleted in the meantime.`;
      throw new ServiceError(gone, { kind }, { cause: thrown });
    }
  }

  /** Registers what a new connection tells of artifacts. */
  listen(connection: Connection): void {
    connection.onNotification("artifact/published", (event) => {
      this.told.tell(event.artifact.uri, event.artifact);
      this.all.set(event.artifact.uri, event.artifact);
      this.changed.fire();
      this.published.fire(event);
    });
    // Another window's, or one that the service itself has let go.
    connection.onNotification("artifact/changed", () => void this.follow(connection));
  }

  /**
   * Asks the connection for the list again, at once and then with a pause: once for all
   * changes that come meanwhile. A service that is about to end is not asked, nor started.
   */
  private async follow(connection: Connection): Promise<void> {
    this.behind = true;
    if (this.followed === connection) {
      return;
    }
    this.followed = connection;
    while (this.behind && this.service.running === connection) {
      this.behind = false;
      const begun = Date.now();
      // A connection that is gone is followed by one that asks again.
      await this.loadFrom(connection).catch(() => undefined);
      await this.pause(Math.min(longestPause, share * (Date.now() - begun)));
    }
    if (this.followed === connection) {
      this.followed = undefined;
    }
  }

  private async pause(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      timer = setTimeout(resolve, ms);
    });
    clearTimeout(timer);
  }

  dispose(): void {
    this.started.dispose();
    this.wake();
    this.changed.dispose();
    this.published.dispose();
  }

  /** Asks the service for everything that is published, starting it if need be. */
  async load(): Promise<void> {
    await this.loadFrom(await this.service.ensure());
  }

  private async loadFrom(connection: Connection): Promise<void> {
    const listed = await this.told.list(
      async () => (await connection.request("artifact/list", {})).artifacts,
    );
    if (listed === undefined || this.service.running !== connection) {
      return; // another one knows better, or will
    }
    const artifacts = [...listed.values()];
    const before = [...this.all.values()].map(publicationOf).sort().join("\n");
    this.all.clear();
    for (const artifact of artifacts) {
      this.all.set(artifact.uri, artifact);
    }
    // A list that is shown anew without need takes no click for a moment.
    if (artifacts.map(publicationOf).sort().join("\n") !== before) {
      this.changed.fire();
    }
  }
}

/** What tells a publication from the one before of the same content and name. */
function publicationOf({ uri, createdAt }: Artifact): string {
  return `${createdAt} ${uri}`;
}
