import { PassThrough, Writable } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { type Backend, run } from "../src/index.js";
import { aborted, bare, execute, gate } from "./backend.js";
import { Host } from "./host.js";

describe("the end", () => {
  /** A backend that tells what happens to it. */
  function told(): { log: string[]; backend: Backend; release: () => void } {
    const log: string[] = [];
    const held = gate();
    return {
      log,
      release: held.open,
      backend: {
        initialize: ({ root }, { lifetime }) => {
          lifetime.addEventListener("abort", () => log.push("lifetime"));
          return { root };
        },
        methods: {
          execute: async (_, { signal }) => {
            await aborted(signal).catch(() => log.push("cancelled"));
            await held.promise;
            log.push("handler");
            return {};
          },
          "process/list": () => [],
        },
        close: async () => {
          log.push("close");
        },
      },
    };
  }

  const order = ["cancelled", "handler", "lifetime", "close"];

  const ends: [string, (host: Host, stop: AbortController) => void, string | undefined][] = [
    ["the end of the input", (host) => host.input.end(), undefined],
    ["malformed input", (host) => host.line("what?"), "no JSON object"],
    ["an end in the middle of a frame", (host) => host.input.end('{"id"'), "middle of a frame"],
    ["a frame that is too long", (host) => host.input.write("x".repeat(16 << 20)), "16 MiB"],
    ["a signal", (_, stop) => stop.abort(), undefined],
  ];
  it.each(ends)("by %s cancels, waits, ends the lifetime, closes", async (_, cause, error) => {
    const { log, backend, release } = told();
    const stop = new AbortController();
    const host = Host.serve(backend, { signal: stop.signal });
    await host.initialize("/r");
    host.send({ id: "1", method: "execute", data: execute });
    await host.call("2", "process/list", {});
    cause(host, stop);
    await vi.waitFor(() => expect(log).toEqual(["cancelled"]), 20_000);
    release();
    const got = await host.done;
    if (error === undefined) expect(got).toBeUndefined();
    else expect(got?.message).toContain(error);
    expect(log).toEqual(order);
    expect((await host.reply("1")).data).toEqual({}); // the last reply still comes
  });

  it("by a failed write is not held up by a blocked read", async () => {
    const { log, backend, release } = told();
    release();
    const input = new PassThrough();
    const output = new Writable({
      write: (chunk: Buffer, _, done) =>
        done(chunk.includes('"2"') ? new Error("EPIPE") : undefined),
    });
    const done = run(backend, { input, output });
    const send = (frame: object): boolean => input.write(`${JSON.stringify(frame)}\n`);
    send({ id: "0", method: "initialize", data: { version: 4, root: "/r", session: "s" } });
    await new Promise((resolve) => setImmediate(resolve));
    send({ id: "1", method: "execute", data: execute });
    send({ id: "2", method: "process/list", data: {} });
    await expect(done).rejects.toThrow("EPIPE");
    expect(log).toEqual(order);
  });

  it("does not wait for a host that reads nothing", async () => {
    const { log, backend } = told();
    const input = new PassThrough();
    const output = new Writable({ highWaterMark: 1, write: () => undefined });
    const done = run(backend, { input, output });
    input.write(
      `${JSON.stringify({ id: "0", method: "initialize", data: { version: 4, root: "/r", session: "s" } })}\n`,
    );
    await new Promise((resolve) => setImmediate(resolve));
    input.end();
    await done;
    expect(log).toEqual(["lifetime", "close"]);
  });

  it("comes when the host lets too much pile up", async () => {
    const input = new PassThrough();
    const output = new Writable({ highWaterMark: 1, write: () => undefined });
    const done = run(bare, { input, output });
    for (let i = 0; i < 5000; i++) input.write("{}\n");
    await expect(done).rejects.toThrow("does not read");
  });

  it("that takes too long says what still runs", async () => {
    const { log, backend } = told();
    const host = Host.serve(backend, { shutdown_timeout_ms: 50 });
    await host.initialize("/r");
    host.send({ id: "1", method: "execute", data: execute });
    await host.call("2", "process/list", {});
    const error = await host.end();
    expect(error?.message).toContain("execute");
    expect(error).toMatchObject({ kind: "outcomeUnknown" });
    expect(log).toEqual(["cancelled"]);
  });

  it("returns the error of close, beside its own reason", async () => {
    const backend: Backend = {
      ...bare,
      close: () => {
        throw new Error("left behind");
      },
    };
    const host = Host.serve(backend);
    await host.initialize("/r");
    expect((await host.end())?.message).toBe("left behind");
    const other = Host.serve(backend);
    await other.initialize("/r");
    other.line("!");
    expect((await other.done)?.message).toMatch(/no JSON object.*left behind/);
  });

  it("before any initialize closes nothing", async () => {
    const close = vi.fn();
    const host = Host.serve({ ...bare, close });
    expect(await host.end()).toBeUndefined();
    expect(close).not.toHaveBeenCalled();
  });

  it("comes by fail, and after a shutdown was answered", async () => {
    const failing = Host.serve({
      ...bare,
      methods: {
        "process/list": (_, { fail }) => {
          fail(new Error("the machine is gone"));
          return [];
        },
      },
    });
    await failing.initialize("/r");
    failing.send({ id: "1", method: "process/list", data: {} });
    expect((await failing.done)?.message).toBe("the machine is gone");
    const host = Host.serve({ ...bare, methods: { shutdown: () => ({}) } });
    await host.initialize("/r");
    expect((await host.call("1", "shutdown", { remove: false })).data).toEqual({});
    expect(await host.done).toBeUndefined();
  });

  it.each([0, -1, 1.5, 2 ** 31, Number.NaN])(
    "refuses a budget of %d ms",
    async (shutdown_timeout_ms) => {
      await expect(run(bare, { shutdown_timeout_ms })).rejects.toThrow(RangeError);
    },
  );
});
