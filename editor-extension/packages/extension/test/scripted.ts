import { PassThrough } from "node:stream";
import type { ClientRequests, ServerNotifications } from "@caisson/protocol";
import {
  createMessageConnection,
  type MessageConnection,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node";
import type { Child, Exit, Launch } from "../src/service/child.js";

/** What the scripted service answers, by method; a thrown ResponseError is its error. */
export type Script = {
  [M in keyof ClientRequests]?: (
    params: ClientRequests[M]["params"],
  ) => ClientRequests[M]["result"] | Promise<ClientRequests[M]["result"]>;
};

/** A double of one service process: it answers as its script says, over real frames. */
export class ScriptedService implements Child {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly ended: Promise<Exit>;
  /** Every request and notification that came, in order. */
  readonly heard: { method: string; params: unknown }[] = [];
  killed = false;
  private exit!: (exit: Exit) => void;
  private readonly rpc: MessageConnection;

  constructor(
    readonly args: readonly string[],
    script: Script,
  ) {
    this.ended = new Promise((resolve) => {
      this.exit = resolve;
    });
    this.rpc = createMessageConnection(
      new StreamMessageReader(this.stdin),
      new StreamMessageWriter(this.stdout),
    );
    const answers: Script = { initialize: () => initialized(), shutdown: () => null, ...script };
    this.rpc.onRequest(async (method, params) => {
      this.heard.push({ method, params });
      const answer = answers[method as keyof Script] as ((p: unknown) => unknown) | undefined;
      if (answer === undefined) {
        throw new ResponseError(-32601, `not scripted: ${method}`);
      }
      return answer(params);
    });
    this.rpc.onNotification((method, params) => {
      this.heard.push({ method, params });
      if (method === "exit") {
        this.crash({ code: 0, signal: null });
      }
    });
    this.rpc.listen();
  }

  notify<M extends keyof ServerNotifications>(method: M, params: ServerNotifications[M]): void {
    void this.rpc.sendNotification(method, params);
  }

  /** Ends the process. */
  crash(exit: Exit = { code: null, signal: "SIGKILL" }): void {
    this.rpc.dispose();
    this.exit(exit);
  }

  kill(): void {
    this.killed = true;
    this.crash();
  }

  /** The parameters of every request of the method. */
  askedFor(method: string): unknown[] {
    return this.heard.filter((h) => h.method === method).map((h) => h.params);
  }
}

/** Launches one scripted service after the other, each with the next script. */
export function scripted(...scripts: Script[]): { launch: Launch; services: ScriptedService[] } {
  const services: ScriptedService[] = [];
  return {
    services,
    launch: (_program, args) => {
      const service = new ScriptedService(args, scripts[services.length] ?? scripts.at(-1) ?? {});
      services.push(service);
      return service;
    },
  };
}

export function initialized(protocolVersion = 1): ClientRequests["initialize"]["result"] {
  return {
    protocolVersion,
    serverInfo: { name: "caisson", version: "1.2.3" },
    capabilities: {
      backends: ["local"],
      maxMessageBytes: 1 << 26,
      maxArtifactBytes: 1 << 28,
      fileSystem: true,
      sessionFork: true,
      processTty: true,
      processSubscribe: true,
      jobs: true,
      programs: true,
      guardConfirm: true,
    },
    configPath: "/home/user/.config/caisson/config.json",
  };
}
