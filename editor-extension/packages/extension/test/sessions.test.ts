import type { Session } from "@caisson/protocol";
import { afterEach, describe, expect, it, vi } from "vitest";
import { CancellationTokenSource, ResponseError } from "vscode-jsonrpc";
import { Processes } from "../src/model/processes.js";
import { Sessions } from "../src/model/sessions.js";
import type { Script } from "./scripted.js";
import { eventually, folder, process, session, TestMemory, testService } from "./things.js";

/** A service that opens sessions by counting, and resumes those that it lists. */
function opening(listed: Session[] = [], count = { n: 0 }): Script {
  return {
    "session/list": () => ({ sessions: listed }),
    "session/open": ({ sessionId, profile, connect }) => {
      const known = listed.find((s) => s.id === sessionId);
      if (known !== undefined) {
        return { session: { ...known, state: connect ? "ready" : "bound" }, resumed: true };
      }
      const id = `s${++count.n}`;
      const state = connect ? "ready" : "bound";
      return { session: session(id, { profile: profile ?? "local", state }), resumed: false };
    },
    "process/list": () => ({ processes: [process("p1")] }),
    "session/delete": () => ({}),
  };
}

describe("Sessions", () => {
  it("opens one session for a folder, however many ask at the same time", async () => {
    const { service, services } = testService([opening()]);
    const sessions = new Sessions(service, new TestMemory(), () => [folder]);
    const [a, b] = await Promise.all([sessions.forFolder(folder), sessions.forFolder(folder)]);
    expect(a.id).toBe(b.id);
    expect(services[0]?.askedFor("session/open")).toHaveLength(1);
    await service.stop();
  });

  it("opens one for those who still want it when the first of them has given up", async () => {
    const first = new CancellationTokenSource();
    let opened = 0;
    const { service } = testService([
      {
        ...opening(),
        "session/open": async () => {
          if (++opened > 1) {
            return { session: session("s2"), resumed: false };
          }
          first.cancel();
          throw new ResponseError(-32800, "cancelled", { kind: "cancelled", retryable: false });
        },
      },
    ]);
    const sessions = new Sessions(service, new TestMemory(), () => [folder]);
    const asked = [
      sessions.forFolder(folder, { token: first.token }),
      sessions.forFolder(folder, { token: first.token }),
      sessions.forFolder(folder),
      sessions.forFolder(folder),
    ];
    const ends = await Promise.allSettled(asked);
    expect(ends.map(({ status }) => status)).toEqual([
      "rejected",
      "rejected",
      "fulfilled",
      "fulfilled",
    ]);
    expect(opened).toBe(2);
    await service.stop();
  });

  it("never moves a session to another profile: it opens a new one", async () => {
    const { service } = testService([opening()]);
    const sessions = new Sessions(service, new TestMemory(), () => [folder]);
    const first = await sessions.forFolder(folder);
    const second = await sessions.openNew(folder, { profile: "isolated" });
    expect(second.id).not.toBe(first.id);
    expect(sessions.get(first.id)?.profile).toBe("local");
    expect(sessions.ofFolder(folder)?.id).toBe(second.id);
    await service.stop();
  });

  it("resumes a folder's session by its id in the next window", async () => {
    const memory = new TestMemory();
    const first = testService([opening()]);
    const before = await new Sessions(first.service, memory, () => [folder]).forFolder(folder);
    await first.service.stop();

    const second = testService([opening([before])]);
    const sessions = new Sessions(second.service, memory, () => [folder]);
    expect(sessions.rememberedOf(folder)).toMatchObject({ id: before.id, profile: "local" });
    expect((await sessions.forFolder(folder)).id).toBe(before.id);
    await second.service.stop();
  });

  it("takes its sessions up again after a crash, with their processes", async () => {
    const known = session("s1", { profile: "isolated" });
    const { service, services } = testService([opening(), opening([known]), opening([known])]);
    const sessions = new Sessions(service, new TestMemory(), () => [folder]);
    const processes = new Processes(service, sessions);
    await sessions.openNew(folder);
    services[0]?.crash();
    await eventually(() => services.length === 2 && processes.get("p1") !== undefined);
    expect(services[1]?.askedFor("session/open")).toMatchObject([
      { sessionId: "s1", connect: false },
    ]);
    await service.stop();
  });

  it("takes up every session with an environment, and nobody finds one that is not open yet", async () => {
    const both = [session("s1"), session("s2", { profile: "isolated" })];
    const { service, services } = testService([opening(), opening(both)]);
    const memory = new TestMemory();
    const sessions = new Sessions(service, memory, () => [folder]);
    await sessions.openNew(folder);
    await sessions.openNew(folder, { profile: "isolated" });
    services[0]?.crash();
    await eventually(() => service.state.is === "waiting");
    await sessions.ready();
    const asked = services[1]?.askedFor("session/open") as { sessionId: string }[];
    expect(asked.map((p) => p.sessionId).sort()).toEqual(["s1", "s2"]);
    // The next window takes up the same, but none that was closed.
    expect(memory.kept.get("caisson.open")).toEqual(["s1", "s2"]);
    await sessions.delete("s1");
    expect(memory.kept.get("caisson.open")).toEqual(["s2"]);
    await service.stop();
  });

  it("leaves a session to the window that has it by now", async () => {
    const memory = new TestMemory();
    await memory.update("caisson.open", ["s1"]);
    const { service } = testService([
      {
        "session/list": () => ({ sessions: [session("s1")] }),
        "session/open": () => {
          throw new Error("held by another service");
        },
      },
    ]);
    const sessions = new Sessions(service, memory, () => [folder]);
    await sessions.ready();
    expect(sessions.get("s1")?.state).toBe("ready");
    expect(memory.kept.get("caisson.open")).toEqual([]);
    await service.stop();
  });

  it("has the sessions of the folders that the window has, also when these come later", async () => {
    const memory = new TestMemory();
    const other = "file:///work/library";
    await memory.update("caisson.sessions", {
      [folder]: { id: "s1", profile: "local", backend: "local" },
      [other]: { id: "s2", profile: "local", backend: "local" },
    });
    const bound = { state: "bound" } as const;
    const { service, services } = testService([
      opening([session("s1", bound), session("s2", bound)]),
    ]);
    const folders: string[] = [];
    const sessions = new Sessions(service, memory, () => folders);
    const asked = () =>
      services[0]?.askedFor("session/open").map((p) => (p as { sessionId: string }).sessionId);
    let changes = 0;
    sessions.onDidChange(() => void changes++);
    await sessions.ready();
    expect(asked()).toEqual([]);
    expect(sessions.isUsed("s1")).toBe(false);

    for (const [come, expected] of [
      [folder, ["s1"]],
      [other, ["s1", "s2"]],
    ] as const) {
      folders.push(come);
      changes = 0;
      sessions.foldersChanged();
      expect(changes).toBe(1);
      await sessions.ready();
      expect(asked()).toEqual(expected);
    }
    expect(sessions.isUsed("s2")).toBe(true);

    folders.pop();
    sessions.foldersChanged();
    await sessions.ready();
    expect(sessions.isUsed("s2")).toBe(false);
    // It comes back with its folder, and is open still.
    folders.push(other);
    sessions.foldersChanged();
    expect((await sessions.forFolder(other)).id).toBe("s2");
    expect(asked()).toEqual(["s1", "s2", "s2"]); // the last one with its environment
    await service.stop();
  });

  it("says of a session that cannot be taken up what is wrong", async () => {
    const memory = new TestMemory();
    const known = session("s1");
    await memory.update("caisson.sessions", {
      [folder]: { id: "s1", profile: "local", backend: "local" },
    });
    const { service } = testService([
      {
        "session/list": () => ({ sessions: [known] }),
        "session/open": () => {
          throw new ResponseError(-32011, "held by another service", {
            kind: "sessionBusy",
            retryable: true,
            hint: "close it there",
          });
        },
      },
    ]);
    const sessions = new Sessions(service, memory, () => [folder]);
    await service.ensure();
    await eventually(() => sessions.get("s1")?.state === "failed");
    expect(sessions.get("s1")?.error).toEqual({
      kind: "sessionBusy",
      message: "held by another service",
      hint: "close it there",
    });
    // Whoever needs it all the same is told the same, and gets no other one.
    await expect(sessions.forFolder(folder)).rejects.toMatchObject({
      data: { kind: "sessionBusy", hint: "close it there" },
    });
    await service.stop();
  });

  it("follows what another window does with a session", async () => {
    let sessions!: Sessions;
    const { service, services } = testService([opening([session("s2", { state: "bound" })])], {
      listen: (c) => sessions.listen(c),
    });
    sessions = new Sessions(service, new TestMemory(), () => [folder]);
    await sessions.ready();
    const tell = (over: Partial<Session>) =>
      services[0]?.notify("session/changed", { session: session("s2", over) });
    tell({ state: "bound", heldBy: 42 });
    await eventually(() => sessions.get("s2")?.heldBy === 42);
    tell({ state: "closed" });
    await eventually(() => sessions.get("s2")?.state === "closed");
    expect(sessions.get("s2")?.heldBy).toBeUndefined();
    services[0]?.notify("session/removed", { sessionId: "s2" });
    await eventually(() => sessions.get("s2") === undefined);
    // It is none of this window's: nothing was done about it.
    expect(services[0]?.askedFor("session/open")).toEqual([]);
    await service.stop();
  });

  describe("of which another window has one", () => {
    afterEach(() => void vi.useRealTimers());

    /** A window whose session process 42 has, and what the service says of it since. */
    async function shared() {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      const memory = new TestMemory();
      await memory.update("caisson.sessions", {
        [folder]: { id: "s1", profile: "local", backend: "local" },
      });
      let sessions!: Sessions;
      let now = session("s1", { state: "bound", heldBy: 42 });
      const { service, services } = testService(
        [
          {
            "session/list": () => ({ sessions: [now] }),
            "session/get": () => ({ session: now }),
            "session/open": ({ connect }) => {
              if (now.heldBy !== undefined) {
                throw new ResponseError(-32011, "held", { kind: "sessionBusy", retryable: true });
              }
              now = session("s1", { state: connect ? "ready" : "bound" });
              return { session: now, resumed: true };
            },
          },
        ],
        { listen: (c) => sessions.listen(c) },
      );
      sessions = new Sessions(service, memory, () => [folder]);
      let opened = 0;
      sessions.onDidOpen(() => void opened++);
      await sessions.ready();
      // Who has it is known, and that it has failed nobody says.
      expect(sessions.ofFolder(folder)).toMatchObject({ state: "bound", heldBy: 42 });
      return {
        sessions,
        opened: () => opened,
        tell: async (over: Partial<Session>) => {
          now = session("s1", { state: "bound", ...over });
          services[0]?.notify("session/changed", { session: now });
          await eventually(
            () =>
              sessions.get("s1")?.heldBy === now.heldBy && sessions.get("s1")?.state === now.state,
          );
        },
        end: async () => {
          vi.useRealTimers();
          await service.stop();
        },
      };
    }

    it("leaves that to whoever had it for a time, and takes it up then", async () => {
      const { sessions, opened, tell, end } = await shared();
      await tell({});
      expect(sessions.isFreed("s1")).toBe(true);
      vi.advanceTimersByTime(9_999);
      // Its window was reloaded, and has it again.
      await tell({ heldBy: 43 });
      expect(sessions.isFreed("s1")).toBe(false);
      vi.advanceTimersByTime(20_000);
      await sessions.ready();
      expect(opened()).toBe(0);
      await tell({});
      vi.advanceTimersByTime(9_999);
      await sessions.ready();
      expect(opened()).toBe(0);
      vi.advanceTimersByTime(1);
      await sessions.ready();
      expect(opened()).toBe(1);
      expect(sessions.isFreed("s1")).toBe(false);
      await end();
    });

    it.each<[string, (sessions: Sessions) => Promise<unknown>]>([
      ["is looked at", (sessions) => sessions.takeUpFreed()],
      ["shows its views", (sessions) => sessions.forFolder(folder, { connect: false })],
      ["uses it", (sessions) => sessions.forFolder(folder)],
    ])("takes it up once when it was given up and the window %s", async (_, use) => {
      const { sessions, opened, tell, end } = await shared();
      await tell({});
      await use(sessions);
      expect(opened()).toBe(1);
      expect(sessions.isFreed("s1")).toBe(false);
      vi.advanceTimersByTime(20_000);
      await sessions.takeUpFreed();
      expect(opened()).toBe(1);
      await end();
    });

    it.each([{ state: "failed" }, { state: "closed" }] as const)(
      "takes up none that its owner left as %j",
      async (over) => {
        const { sessions, opened, tell, end } = await shared();
        await tell(over);
        await sessions.takeUpFreed();
        await tell({ heldBy: 42 });
        await tell({});
        await tell(over);
        await sessions.takeUpFreed();
        vi.advanceTimersByTime(20_000);
        await sessions.ready();
        expect(opened()).toBe(0);
        await end();
      },
    );
  });

  it("takes up at once what was given up in just that moment", async () => {
    const memory = new TestMemory();
    await memory.update("caisson.sessions", {
      [folder]: { id: "s1", profile: "local", backend: "local" },
    });
    let asked = 0;
    const bound = session("s1", { state: "bound" });
    const { service } = testService([
      {
        "session/list": () => ({ sessions: [bound] }),
        "session/get": () => ({ session: bound }),
        "session/open": () => {
          if (++asked === 1) {
            throw new ResponseError(-32011, "held", { kind: "sessionBusy", retryable: true });
          }
          return { session: bound, resumed: true };
        },
      },
    ]);
    const sessions = new Sessions(service, memory, () => [folder]);
    await sessions.ready();
    expect(asked).toBe(2);
    expect(sessions.get("s1")?.state).toBe("bound");
    await service.stop();
  });

  it("gives the session of an id, and no other one in its place", async () => {
    const { service, services } = testService([opening([session("s1", { state: "bound" })])]);
    const sessions = new Sessions(service, new TestMemory(), () => [folder]);
    expect(await sessions.open("s1")).toMatchObject({ id: "s1", state: "ready" });
    await sessions.delete("s1");
    await expect(sessions.open("s1")).rejects.toMatchObject({ data: { kind: "sessionNotFound" } });
    expect(services[0]?.askedFor("session/open")).toHaveLength(1);
    await service.stop();
  });

  it("knows of a session that it is ending, as long as that does not fail", async () => {
    let sessions!: Sessions;
    const during: unknown[] = [];
    const script: Script = {
      ...opening([session("s1")]),
      "session/delete": ({ force }) => {
        during.push(sessions.endOf("s1"));
        if (force !== true) {
          throw new Error("the environment cannot be reached");
        }
        return {};
      },
    };
    const { service } = testService([script]);
    sessions = new Sessions(service, new TestMemory(), () => [folder]);
    await sessions.ready();
    await expect(sessions.delete("s1")).rejects.toThrow("cannot be reached");
    expect(sessions.endOf("s1")).toBeUndefined();
    await sessions.delete("s1", true);
    expect(sessions.endOf("s1")).toBe("deleted");
    expect(during).toEqual(["deleted", "deleted"]);
    await service.stop();
  });

  it("asks for no processes of a session that was only bound: that would make its environment", async () => {
    const { service, services } = testService([opening()]);
    const sessions = new Sessions(service, new TestMemory(), () => [folder]);
    new Processes(service, sessions);
    await sessions.forFolder(folder, { connect: false });
    expect(services[0]?.askedFor("process/list")).toEqual([]);
    await sessions.forFolder(folder);
    await service.stop();
  });

  it("does not keep a session that could not be opened", async () => {
    let tell: (session: Session) => void = () => undefined;
    const memory = new TestMemory();
    let sessions!: Sessions;
    const script: Script = {
      "session/list": () => ({ sessions: [] }),
      "session/open": () => {
        tell(session("s9", { state: "connecting" }));
        tell(session("s9", { state: "closed" }));
        throw new Error("there is no such image");
      },
    };
    const { service, services } = testService([script], { listen: (c) => sessions.listen(c) });
    sessions = new Sessions(service, memory, () => [folder]);
    await service.ensure();
    tell = (changed) => services[0]?.notify("session/changed", { session: changed });
    await expect(sessions.openNew(folder)).rejects.toThrow("no such image");
    expect(sessions.list()).toEqual([]);
    expect(sessions.rememberedOf(folder)).toBeUndefined();
    await service.stop();
  });

  it("starts no service to look what a session became that could not be opened", async () => {
    const { service, services } = testService([
      {
        ...opening(),
        "session/open": () => {
          void service.stop();
          return new Promise(() => undefined);
        },
      },
    ]);
    const sessions = new Sessions(service, new TestMemory(), () => [folder]);
    await expect(sessions.openNew(folder)).rejects.toThrow();
    await service.stop();
    expect(services).toHaveLength(1);
  });

  it("keeps what is told of sessions while the list is on its way", async () => {
    let sessions!: Sessions;
    let answer = (): void => undefined;
    let gate = Promise.resolve();
    const listed = [session("s1", { state: "bound" }), session("s2", { state: "bound" })];
    const { service, services } = testService(
      [
        {
          "session/list": async () => {
            await gate;
            return { sessions: listed };
          },
        },
      ],
      { listen: (c) => sessions.listen(c) },
    );
    sessions = new Sessions(service, new TestMemory(), () => [folder]);
    await sessions.ready();
    gate = new Promise((resolve) => {
      answer = resolve;
    });
    const loaded = sessions.load();
    await eventually(() => services[0]?.askedFor("session/list").length === 2);
    services[0]?.notify("session/changed", { session: session("s1", { state: "closed" }) });
    services[0]?.notify("session/removed", { sessionId: "s2" });
    services[0]?.notify("session/changed", { session: session("s3") });
    await eventually(() => sessions.get("s3") !== undefined);
    answer();
    await loaded;
    expect(sessions.list().map(({ id, state }) => `${id} ${state}`)).toEqual([
      "s1 closed",
      "s3 ready",
    ]);
    await service.stop();
  });

  it("takes no list of a service that is about to end", async () => {
    let answer = (): void => undefined;
    let gate = Promise.resolve();
    let there = [session("s1")];
    let loaded: Promise<void> = gate;
    const { service, services } = testService([
      {
        "session/list": async () => {
          await gate;
          return { sessions: there };
        },
        shutdown: async () => {
          answer();
          await loaded;
          return null;
        },
      },
    ]);
    const sessions = new Sessions(service, new TestMemory(), () => [folder]);
    await sessions.ready();
    gate = new Promise((resolve) => {
      answer = resolve;
    });
    there = [];
    loaded = sessions.load();
    await eventually(() => services[0]?.askedFor("session/list").length === 2);
    await service.stop();
    expect(sessions.list().map(({ id }) => id)).toEqual(["s1"]);
  });

  it("forgets a deleted session", async () => {
    const memory = new TestMemory();
    const { service } = testService([opening()]);
    const sessions = new Sessions(service, memory, () => [folder]);
    const { id } = await sessions.forFolder(folder);
    await sessions.delete(id);
    expect(sessions.list()).toEqual([]);
    expect(memory.kept.get("caisson.sessions")).toEqual({});
    await service.stop();
  });
});

describe("Processes", () => {
  it("has what runs before what is over, the newest first", async () => {
    const at = (minute: number) => ({ startedAt: `2026-01-01T10:0${minute}:00Z` });
    const script: Script = {
      "process/list": () => ({
        processes: [
          process("over", { ...at(9), status: "exited" }),
          process("first", at(1)),
          process("second", at(2)),
        ],
      }),
    };
    const { service } = testService([script]);
    const processes = new Processes(
      service,
      new Sessions(service, new TestMemory(), () => [folder]),
    );
    await service.ensure();
    await processes.refresh("s1");
    expect(processes.ofSession("s1").map((p) => p.id)).toEqual(["second", "first", "over"]);
    // They stay the same objects, so that a list can show one anew.
    const [first] = processes.ofSession("s1");
    await processes.refresh("s1");
    expect(processes.ofSession("s1")[0]).toBe(first);
    await service.stop();
  });

  it("keeps nothing of a process that is no longer said of it", async () => {
    let processes!: Processes;
    const { service, services } = testService([opening()], { listen: (c) => processes.listen(c) });
    processes = new Processes(service, new Sessions(service, new TestMemory(), () => [folder]));
    await service.ensure();
    for (const over of [{ status: "failed" as const, reason: "no such program" }, {}]) {
      services[0]?.notify("process/event", { type: "updated", process: process("p1", over) });
      await eventually(() => processes.get("p1")?.status === process("p1", over).status);
    }
    expect(processes.get("p1")?.reason).toBeUndefined();
    await service.stop();
  });

  /** The processes of a window, and how they are asked for. */
  async function listed(script: Script) {
    let processes!: Processes;
    const { service, services } = testService([{ ...opening(), ...script }], {
      listen: (c) => processes.listen(c),
    });
    const sessions = new Sessions(service, new TestMemory(), () => [folder]);
    processes = new Processes(service, sessions);
    await sessions.ready();
    const exit = async (id: string) => {
      const ended = process(id, { status: "exited", exitCode: 0 });
      services[0]?.notify("process/event", { type: "exited", process: ended });
      await eventually(() => processes.get(id)?.status === "exited");
    };
    return { service, services, processes, exit };
  }

  it("asks for a session's processes once at a time", async () => {
    let answer = (): void => undefined;
    const { service, services, processes } = await listed({
      "process/list": ({ sessionId }) =>
        new Promise((resolve) => {
          answer = () => resolve({ processes: [process(`of ${sessionId}`, { sessionId })] });
        }),
    });
    const asked = () => services[0]?.askedFor("process/list").length;
    const first = processes.refresh("s1");
    for (let i = 0; i < 10; i++) {
      await processes.refresh("s1");
    }
    await eventually(() => asked() === 1);
    answer();
    await first;
    const second = processes.refresh("s1");
    await eventually(() => asked() === 2);
    const others = processes.refresh("s2");
    answer();
    await eventually(() => asked() === 3);
    answer();
    await Promise.all([second, others]);
    expect(processes.get("of s1")?.status).toBe("running");
    expect(processes.get("of s2")?.status).toBe("running");
    await service.stop();
  });

  it.each<[string, (processes: Processes) => Promise<void>]>([
    ["a list", (processes) => processes.refresh("s1")],
    ["an answer to stop", (processes) => processes.stop(process("p1"))],
    ["an answer to a signal", (processes) => processes.signal(process("p1"), "SIGTERM")],
  ])(
    "does not take a process for one that runs by %s that is older than its end",
    async (_, ask) => {
      let answer = (): void => undefined;
      let waiting = 0;
      const late = <T>(result: T) =>
        new Promise<T>((resolve) => {
          waiting++;
          answer = () => resolve(result);
        });
      const { service, processes, exit } = await listed({
        "process/list": () => late({ processes: [process("p1")] }),
        "process/stop": () => late({ process: process("p1", { status: "stopping" }) }),
        "process/signal": () => late({ process: process("p1") }),
      });
      const asked = ask(processes);
      await eventually(() => waiting === 1);
      await exit("p1");
      answer();
      await asked;
      expect(processes.get("p1")?.status).toBe("exited");
      await service.stop();
    },
  );

  it.each<[string, (processes: Processes) => Promise<void>]>([
    ["process/stop", (processes) => processes.stop(process("p1"))],
    ["process/signal", (processes) => processes.signal(process("p1"), "SIGINT")],
  ])("asks a service that came back for %s when the session is open again", async (method, ask) => {
    const known = session("s1");
    const { service, services } = testService([
      opening(),
      { ...opening([known]), [method]: () => ({ process: process("p1") }) },
    ]);
    const sessions = new Sessions(service, new TestMemory(), () => [folder]);
    const processes = new Processes(service, sessions);
    await sessions.openNew(folder);
    services[0]?.crash();
    await eventually(() => service.state.is === "waiting");
    await ask(processes);
    const asked = services[1]?.heard.map((h) => h.method) ?? [];
    expect(asked.indexOf("session/open")).toBeGreaterThan(0);
    expect(asked.indexOf(method)).toBeGreaterThan(asked.indexOf("session/open"));
    await service.stop();
  });

  it("knows of nothing that runs when the service was stopped", async () => {
    const { service, processes } = await listed({});
    await processes.refresh("s1");
    expect(processes.active).toBe(true);
    await service.stop();
    expect(processes.active).toBe(false);
    expect(processes.ofSession("s1")).toEqual([]);
  });

  it("forgets what a service said that is gone", async () => {
    let processes!: Processes;
    const script = { ...opening(), "process/list": () => ({ processes: [] }) };
    const { service, services } = testService([script], { listen: (c) => processes.listen(c) });
    processes = new Processes(service, new Sessions(service, new TestMemory(), () => [folder]));
    await service.ensure();
    services[0]?.notify("process/event", { type: "started", process: process("p1") });
    services[0]?.notify("process/event", {
      type: "exited",
      process: process("p1", { status: "exited", exitCode: 0 }),
    });
    await eventually(() => processes.get("p1")?.status === "exited");
    expect(processes.active).toBe(false);
    services[0]?.crash();
    await eventually(() => processes.get("p1") === undefined);
    await service.stop();
  });
});
