import { PassThrough } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import type { Exit } from "../src/service/child.js";
import { Connection } from "../src/service/connection.js";
import { ServiceError } from "../src/service/errors.js";
import type { Service } from "../src/service/service.js";
import { initialized } from "./scripted.js";
import { eventually, testService } from "./things.js";

describe("Service", () => {
  it("starts at the first need, once for all who need it at the same time", async () => {
    const { service, services } = testService([{ "session/list": () => ({ sessions: [] }) }]);
    expect(service.state.is).toBe("stopped");
    await Promise.all([service.ensure(), service.ensure(), service.request("session/list", {})]);
    expect(services).toHaveLength(1);
    expect(services[0]?.args).toEqual(["serve", "--log-level", "debug"]);
    expect(service.state).toMatchObject({ is: "running", version: "1.2.3" });
    await service.stop();
  });

  it("ends the service in order", async () => {
    const { service, services } = testService([{}]);
    await service.ensure();
    await service.stop();
    expect(services[0]?.heard.map((h) => h.method)).toEqual([
      "initialize",
      "initialized",
      "$/alive",
      "shutdown",
      "exit",
    ]);
    expect(services[0]?.killed).toBe(false);
    expect(service.state.is).toBe("stopped");
  });

  it("refuses a program that speaks another version", async () => {
    const { service } = testService([{ initialize: () => initialized(2) }]);
    await expect(service.ensure()).rejects.toMatchObject({
      data: { kind: "protocolMismatch" },
      message: expect.stringContaining("version 2"),
    });
    // The status bar and a message show both.
    expect(service.state).toMatchObject({
      is: "failed",
      error: { hint: expect.stringContaining("Update") },
    });
  });

  it("says at once that it refuses a program, also one that does not hear of its end", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const { service, services } = testService([
        { initialize: () => initialized(2), shutdown: () => new Promise(() => undefined) },
      ]);
      const refused = expect(service.ensure()).rejects.toThrow("version 2");
      await eventually(() => services[0]?.askedFor("shutdown").length === 1);
      expect(service.state.is).toBe("failed");
      expect(services[0]?.killed).toBe(false);
      await refused;
      // It has gone before another one starts, or the window closes.
      let stopped = false;
      const stopping = service.stop().then(() => {
        stopped = true;
      });
      await vi.advanceTimersByTimeAsync(1_999);
      expect(stopped).toBe(false);
      await vi.advanceTimersByTimeAsync(1);
      await stopping;
      expect(services[0]?.killed).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  it("says the last words of a program that ends before it answers", async () => {
    const { service, services } = testService([{ initialize: () => new Promise(() => undefined) }]);
    const started = service.ensure();
    await eventually(() => services.length === 1);
    services[0]?.stderr.write("caisson: no such flag\n");
    await eventually(() => services[0]?.stderr.readableLength === 0);
    services[0]?.crash({ code: 2, signal: null });
    await expect(started).rejects.toThrow(/exit code 2.*no such flag/);
    // Nothing was asked of it that it may have done.
    await expect(started).rejects.toMatchObject({ data: { outcomeUnknown: false } });
  });

  it("says what a program died of, and nothing of its stacks", async () => {
    const { service, services } = testService([{ initialize: () => new Promise(() => undefined) }]);
    const started = service.ensure();
    await eventually(() => services.length === 1);
    const stack = "\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:7 +0x1d\n";
    services[0]?.stderr.write("time=now level=INFO msg=started\npan");
    services[0]?.stderr.write(`ic: index out of range\n${stack.repeat(1000)}gs     0x0\n`);
    await eventually(() => services[0]?.stderr.readableLength === 0);
    services[0]?.crash({ code: 2, signal: null });
    await expect(started).rejects.toThrow(/\(exit code 2\): panic: index out of range$/);
  });

  it.each(["no header\r\n\r\n", "Content-Length: 5\r\n\r\n{bad}", "Content-Length: x\r\n\r\n{}"])(
    "ends a program that says %j, and leaves nobody waiting",
    async (garbage) => {
      const { service, services, log } = testService([
        { "session/list": () => new Promise(() => undefined) },
      ]);
      await service.ensure();
      const waiting = service.request("session/list", {});
      await eventually(() => services[0]?.askedFor("session/list").length === 1);
      services[0]?.stdout.write(garbage);
      await expect(waiting).rejects.toThrow(/no message of the protocol/);
      expect(services[0]?.killed).toBe(true);
      await eventually(() => service.state.is === "waiting");
      expect(log.join()).toContain("no message of the protocol");
      await service.stop();
    },
  );

  it("knows of a connection that its service is gone", async () => {
    const { service, services } = testService([{}]);
    const connection = await service.ensure();
    expect(connection.over).toBe(false);
    services[0]?.crash();
    await connection.ended;
    expect(connection.over).toBe(true);
    await service.stop();
  });

  it("says the last words of a program that is gone before it was asked", async () => {
    const child = {
      stdin: new PassThrough().destroy(),
      stdout: new PassThrough().end(),
      stderr: new PassThrough(),
      ended: new Promise<Exit>((resolve) => {
        setTimeout(() => resolve({ code: 7, signal: null }), 20);
      }),
      kill: () => undefined,
    };
    child.stdin.on("error", () => undefined);
    child.stderr.end("boom\n");
    const started = Connection.start(child, { processId: null }, () => undefined);
    await expect(started).rejects.toThrow(/ended before it answered \(exit code 7\): boom/);
  });

  it("starts again after crashes, later each time, and gives up at last", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const { service, services } = testService([{}]);
      await service.ensure();
      for (const wait of [200, 1_000, 5_000, 15_000]) {
        const count = services.length;
        services.at(-1)?.crash();
        await eventually(() => service.state.is === "waiting");
        expect(service.state).toMatchObject({ retryInMs: wait });
        const needed = service.ensure(); // who needs it time and again does not start it so
        await vi.advanceTimersByTimeAsync(wait - 1);
        expect(services).toHaveLength(count);
        await vi.advanceTimersByTimeAsync(1);
        await needed;
        expect(service.state.is).toBe("running");
      }
      services.at(-1)?.crash();
      await eventually(() => service.state.is === "failed");
      // Whoever needs it all the same starts it.
      await service.ensure();
      expect(service.state.is).toBe("running");
      await service.stop();
    } finally {
      vi.useRealTimers();
    }
  });

  it.each([
    ["ran for long", async () => 60_001],
    [
      "was restarted by somebody",
      async (service: Service) => {
        await service.restart();
        return 0;
      },
    ],
  ])("has no patience less with a service that %s", async (_, between) => {
    let clock = 0;
    const { service, services } = testService([{}], { now: () => clock });
    await service.ensure();
    services.at(-1)?.crash();
    await eventually(() => service.state.is === "waiting");
    await service.ensure();
    clock += await between(service);
    services.at(-1)?.crash();
    await eventually(() => service.state.is === "waiting");
    expect(service.state).toMatchObject({ retryInMs: 200 });
    await service.stop();
  });

  it("starts nothing any more that was to start after a crash when it is stopped", async () => {
    const { service, services } = testService([{}]);
    const told: string[] = [];
    service.onDidGiveUp((error) => void told.push(error.message));
    await service.ensure();
    services[0]?.crash();
    await eventually(() => service.state.is === "waiting");
    const needed = expect(service.ensure()).rejects.toMatchObject({ cancelled: true });
    await service.stop();
    await needed;
    expect(service.state.is).toBe("stopped");
    expect(services).toHaveLength(1);
    expect(told).toEqual([]);
  });

  it("does not wait for a program's greeting when it is stopped or restarted", async () => {
    const silent = { initialize: () => new Promise<never>(() => undefined) };
    const { service, services } = testService([silent, {}]);
    const needed = expect(service.ensure()).rejects.toMatchObject({ cancelled: true });
    await eventually(() => services[0]?.askedFor("initialize").length === 1);
    await service.restart();
    await needed;
    expect(services[0]?.killed).toBe(true);
    expect(service.state.is).toBe("running");
    await service.stop();
  });

  it.each([
    [
      "is longer than the service takes",
      () => "x".repeat(1 << 26),
      /64 MiB.*64 MiB/,
      "Give less at once.",
    ],
    ["is no JSON", () => 1n, /BigInt/, undefined],
  ])("does not send what %s, and says so at once", async (_, value, why, hint) => {
    const { service, services } = testService([{ "session/list": () => ({ sessions: [] }) }]);
    const connection = await service.ensure();
    const params = { sessionId: "s1", name: "bash", arguments: { command: value() } };
    const refused = await connection.request("tool/call", params).catch((thrown) => thrown);
    expect(refused).toBeInstanceOf(ServiceError);
    expect(refused.message).toMatch(why);
    expect(refused.message).toContain("Nothing was done");
    expect(refused.hint).toBe(hint);
    await service.request("session/list", {});
    expect(services[0]?.askedFor("tool/call")).toEqual([]);
    await service.stop();
  });

  it("tells when it does not start again by itself", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      let there = true;
      const { service, services } = testService([{}], { there: () => there });
      const told: string[] = [];
      service.onDidGiveUp((error) => void told.push(error.message));
      await service.ensure();
      there = false;
      services[0]?.crash();
      await eventually(() => service.state.is === "waiting");
      expect(told).toEqual([]);
      await vi.advanceTimersByTimeAsync(200);
      await eventually(() => told.length > 0);
      expect(told).toEqual(["It is gone."]);
      expect(services).toHaveLength(1);
    } finally {
      vi.useRealTimers();
    }
  });

  it("ends a program that never greets", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const silent = { initialize: () => new Promise<never>(() => undefined) };
      const { service, services } = testService([silent]);
      const started = expect(service.ensure()).rejects.toThrow(/did not greet within 20 s/);
      await eventually(() => services[0]?.askedFor("initialize").length === 1);
      await vi.advanceTimersByTimeAsync(20_000);
      await started;
      expect(services[0]?.killed).toBe(true);
      expect(service.state.is).toBe("failed");
    } finally {
      vi.useRealTimers();
    }
  });

  it("starts another only when the one that is to end has ended", async () => {
    let release = (): void => undefined;
    const slow = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { service, services } = testService([
      { shutdown: () => slow.then(() => null) },
      { "session/list": () => ({ sessions: [] }) },
    ]);
    await service.ensure();
    const restarted = service.restart();
    const asked = service.request("session/list", {});
    await eventually(() => services[0]?.askedFor("shutdown").length === 1);
    expect(services).toHaveLength(1);
    release();
    await Promise.all([restarted, asked]);
    expect(services).toHaveLength(2);
    expect(service.state.is).toBe("running");
    await service.stop();
  });

  it("does not start again what was stopped", async () => {
    const { service, services } = testService([{}]);
    await service.ensure();
    await service.stop();
    expect(services).toHaveLength(1);
    expect(service.state.is).toBe("stopped");
  });

  it("tells the progress of requests at the same time to each one that asked", async () => {
    let open = (): void => undefined;
    const both = new Promise<void>((resolve) => {
      open = resolve;
    });
    const { service, services } = testService([
      {
        "session/open": async ({ profile, workDoneToken = "" }) => {
          await both;
          services[0]?.notify("$/progress", {
            token: workDoneToken,
            value: { kind: "report", message: `Starting ${profile}` },
          });
          throw new Error("enough");
        },
      },
    ]);
    const steps: Record<string, unknown[]> = { one: [], two: [] };
    const asked = Object.entries(steps).map(([profile, told]) =>
      service.request(
        "session/open",
        { workspace: null, profile },
        { progress: (value) => void told.push(value.message) },
      ),
    );
    await eventually(() => services[0]?.askedFor("session/open").length === 2);
    open();
    await Promise.allSettled(asked);
    expect(steps).toEqual({ one: ["Starting one"], two: ["Starting two"] });
    await service.stop();
  });

  it("tells a request's progress to whoever asked, and to nobody else", async () => {
    const { service, services } = testService([
      {
        "session/open": (params) => {
          const token = params.workDoneToken ?? "";
          services[0]?.notify("$/progress", { token: "another", value: { kind: "report" } });
          services[0]?.notify("$/progress", {
            token,
            value: { kind: "report", message: "Starting the container" },
          });
          throw new Error("enough");
        },
      },
    ]);
    const steps: (string | undefined)[] = [];
    const asked = service.request(
      "session/open",
      { workspace: null },
      { progress: (value) => void steps.push(value.message) },
    );
    await expect(asked).rejects.toBeInstanceOf(ServiceError);
    expect(steps).toEqual(["Starting the container"]);
    await service.stop();
  });
});
