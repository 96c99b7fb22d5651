import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Script } from "./scripted.js";
import { eventually, testService } from "./things.js";

const never = () => new Promise<never>(() => undefined);

/** A service that greets and then answers nothing, not even a sign of life. */
const mute = { "session/list": never, "$/alive": never, shutdown: never } as Script;

describe("a service that is waited for", () => {
  beforeEach(() => {
    vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"],
    });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("is told to have fallen silent, once, and can be restarted soon", async () => {
    const { service, services } = testService([mute, {}]);
    const told: string[] = [];
    service.onDidFallSilent(({ message }) => void told.push(message));
    await service.ensure();
    const asked = expect(service.request("session/list", {})).rejects.toThrow(/ended/);
    await vi.advanceTimersByTimeAsync(10_000);
    await eventually(() => services[0]?.askedFor("$/alive").length === 1);
    await vi.advanceTimersByTimeAsync(9_999);
    expect(service.state.is).toBe("running");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(service.state).toMatchObject({ is: "silent", error: { message: told[0] } });
    expect(told).toEqual([expect.stringContaining("not answered for 20 s")]);
    expect(services[0]?.askedFor("$/alive")).toHaveLength(1);

    const restarted = service.restart();
    await vi.advanceTimersByTimeAsync(2_000);
    await Promise.all([restarted, asked]);
    expect(services[0]?.killed).toBe(true);
    expect(service.state.is).toBe("running");
    await service.stop();
  });

  it("is as it was when it speaks again", async () => {
    const { service, services } = testService([mute]);
    await service.ensure();
    void service.request("session/list", {}).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(service.state.is).toBe("silent");
    services[0]?.notify("$/progress", { token: "another", value: { kind: "report" } });
    await eventually(() => service.state.is === "running");
    expect(service.state).toMatchObject({ is: "running", version: "1.2.3" });
    services[0]?.crash();
    await eventually(() => service.state.is === "waiting");
    await service.stop();
  });

  it("may take its time for a request when it gives signs of life", async () => {
    // An error is one, too: it knows no such method.
    const { service, services } = testService([
      { "session/list": never, "artifact/list": () => ({ artifacts: [] }) },
    ]);
    await service.ensure();
    void service.request("session/list", {}).catch(() => undefined);
    for (let asked = 1; asked <= 5; asked++) {
      await vi.advanceTimersByTimeAsync(10_000);
      await eventually(() => services[0]?.askedFor("$/alive").length === asked);
      // What is answered later was read later.
      await service.request("artifact/list", {});
    }
    expect(service.state.is).toBe("running");
    await service.stop();
  });

  it("is gone before its window is, when it is to end and gives no sign of life", async () => {
    const { service, services } = testService([mute]);
    await service.ensure();
    const stopped = service.stop();
    await vi.advanceTimersByTimeAsync(2_999);
    expect(services[0]?.killed).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await stopped;
    expect(services[0]?.killed).toBe(true);
  });

  it("has its time to end when it gives signs of life", async () => {
    const { service, services } = testService([{ shutdown: never }]);
    await service.ensure();
    const stopped = service.stop();
    await eventually(() => services[0]?.askedFor("shutdown").length === 1);
    await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(14_999);
    expect(services[0]?.killed).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await stopped;
    expect(services[0]?.killed).toBe(true);
  });

  it("is left alone when nobody waits", async () => {
    const { service, services } = testService([{ "session/list": () => ({ sessions: [] }) }]);
    await service.ensure();
    await service.request("session/list", {});
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(services[0]?.askedFor("$/alive")).toHaveLength(0);
    await service.stop();
  });
});
