import { once } from "node:events";
import { createConnection, type Socket } from "node:net";
import { createInterface } from "node:readline";
import type {
  Artifact,
  Process,
  ProcessEventParams,
  Session,
  ToolCallResult,
} from "@caisson/protocol";
import { until } from "./until.js";

/** An error of the agent's operation, with the data of the service's. */
export class AgentError extends Error {
  constructor(
    message: string,
    readonly data: { kind?: string; hint?: string } | undefined,
  ) {
    super(message);
  }
}

interface Answer {
  id: number;
  result?: unknown;
  error?: { message: string; data?: { kind?: string; hint?: string } };
}

/** The test's end of the agent that runs as an extension in the workbench. */
export class Agent {
  private next = 0;
  private readonly waiting = new Map<number, (answer: Answer) => void>();

  private constructor(private readonly socket: Socket) {
    socket.on("error", () => undefined); // its end follows
    socket.on("close", () => {
      for (const [id, answer] of this.waiting) {
        answer({ id, error: { message: "The agent is gone, with its window." } });
      }
      this.waiting.clear();
    });
    createInterface({ input: socket }).on("line", (line) => {
      const answer = JSON.parse(line) as Answer;
      this.waiting.get(answer.id)?.(answer);
      this.waiting.delete(answer.id);
    });
  }

  /** Connects as soon as the extension listens. */
  static async connect(path: string): Promise<Agent> {
    return until("the agent extension listens", async () => {
      const socket = createConnection(path);
      try {
        await once(socket, "connect");
        return new Agent(socket);
      } catch {
        socket.destroy();
        return undefined;
      }
    });
  }

  /** The names of the window's folders. */
  folders(): Promise<string[]> {
    return this.ask("folders");
  }

  /** Gives the window that folder behind its first one or, without one, takes it away. */
  setSecondFolder(path?: string): Promise<boolean> {
    return this.ask("setSecondFolder", path ?? null);
  }

  /** The session of the current folder or, by its number, of another one. */
  open(profile?: string, folder?: number): Promise<Session> {
    return this.ask("open", profile === undefined ? {} : { profile }, folder ?? -1);
  }

  call(session: Session, name: string, input: Record<string, unknown>): Promise<ToolCallResult> {
    return this.ask("call", session.id, name, input);
  }

  start(session: Session, command: string, options: object = {}): Promise<Process> {
    return this.ask("start", session.id, command, options);
  }

  /** What the extension was told by events. */
  seen(): Promise<{ processes: ProcessEventParams[]; artifacts: Artifact[] }> {
    return this.ask("seen");
  }

  /** Opens a file in an editor, with the cursor behind the text. */
  edit(path: string, behind = ""): Promise<void> {
    return this.ask("edit", path, behind);
  }

  /** Changes a setting of the editor's user; undefined is the default again. */
  configure(name: string, value?: unknown): Promise<void> {
    return this.ask("configure", name, value);
  }

  /** What the editor finds wrong in a file. */
  problems(path: string): Promise<string[]> {
    return this.ask("problems", path);
  }

  invokeTool(name: string, input: Record<string, unknown>): Promise<string[]> {
    return this.ask("invokeTool", name, input);
  }

  close(): void {
    this.socket.destroy();
  }

  private async ask<T>(op: string, ...args: unknown[]): Promise<T> {
    const id = ++this.next;
    const answer = await new Promise<Answer>((resolve) => {
      if (this.socket.destroyed) {
        throw new Error("The agent is gone, with its window.");
      }
      this.waiting.set(id, resolve);
      this.socket.write(`${JSON.stringify({ id, op, args })}\n`);
    });
    if (answer.error !== undefined) {
      throw new AgentError(answer.error.message, answer.error.data);
    }
    return answer.result as T;
  }
}
