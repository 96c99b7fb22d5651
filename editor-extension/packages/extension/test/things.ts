import type { Process, Session } from "@caisson/protocol";
import type { Memory } from "../src/model/memory.js";
import type { Connection } from "../src/service/connection.js";
import { ServiceError } from "../src/service/errors.js";
import { Service } from "../src/service/service.js";
import { type Script, type ScriptedService, scripted } from "./scripted.js";

export const folder = "file:///work/project";

export function session(id: string, over: Partial<Session> = {}): Session {
  return {
    id,
    workspace: folder,
    profile: "local",
    backend: "local",
    environmentId: `caisson-${id}`,
    root: "/work/project",
    state: "ready",
    shared: false,
    persistent: false,
    createdAt: "2026-01-01T10:00:00Z",
    lastUsedAt: "2026-01-01T10:00:00Z",
    ...over,
  };
}

export function process(id: string, over: Partial<Process> = {}): Process {
  return {
    id,
    sessionId: "s1",
    command: "make",
    cwd: "/work/project",
    status: "running",
    owner: { kind: "main", id: "s1" },
    startedAt: "2026-01-01T10:00:00Z",
    totalBytes: 0,
    outputClosed: false,
    environment: { profile: "local", backend: "local", id: "caisson-s1" },
    ...over,
  };
}

/** A memory that lives as long as the test. */
export class TestMemory implements Memory {
  readonly kept = new Map<string, unknown>();

  get<T>(key: string): T | undefined {
    return this.kept.get(key) as T | undefined;
  }

  async update(key: string, value: unknown): Promise<void> {
    // As an editor keeps it: a copy.
    this.kept.set(key, structuredClone(value));
  }
}

interface TestOptions {
  listen?: (connection: Connection) => void;
  /** Whether the program can be found now. */
  there?: () => boolean;
  /** The clock, in ms. */
  now?: () => number;
}

/** A Service whose processes follow the scripts, one after the other. */
export function testService(
  scripts: Script[],
  { listen = () => undefined, there = () => true, now = Date.now }: TestOptions = {},
): { service: Service; services: ScriptedService[]; log: string[] } {
  const { launch, services } = scripted(...scripts);
  const log: string[] = [];
  const service = new Service({
    locate: async () => {
      if (!there()) {
        throw new ServiceError("It is gone.");
      }
      return { path: "/bin/caisson", from: "PATH" };
    },
    launch,
    args: () => ["--log-level", "debug"],
    initialize: () => ({ processId: null }),
    listen,
    log: (line) => void log.push(line),
    now,
  });
  return { service, services, log };
}

/** Resolves when the condition holds; it is looked at whenever other work was done. */
export async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
