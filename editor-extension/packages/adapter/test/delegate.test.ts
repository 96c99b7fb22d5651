import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type Backend, type Delegate, type DelegateOptions, delegate } from "../src/index.js";
import { Peer } from "../src/peer.js";
import { gate } from "./backend.js";
import { Far } from "./far.js";
import { Host, token } from "./host.js";

/** An adapter that delegates to a scripted peer, initialized. */
async function delegated(capabilities: string[] = [], wrap = (d: Delegate): Backend => d) {
  const far = new Far();
  const host = Host.serve(wrap(delegate(far.options)));
  const ready = host.initialize("/r", { environment: { SECRET: "x" }, identity: "i" });
  await far.answer("initialize", { version: 4, root: "/real", capabilities });
  await ready;
  return { far, host };
}

const execute = { call: { name: "t", arguments: "{}" }, actor: "s" };
const program = { program: { code: "", tools: [] }, timeout_ms: 0, actor: "s" };

describe("options", () => {
  const { input, output, close } = new Far();
  const command = ["worker"];
  it.each([
    ["nothing", {}],
    ["both", { command, input, output, close }],
    ["a command and one stream", { command, input }],
    ["no close", { input, output }],
    ["no output", { input, close }],
    ["an empty command", { command: [] }],
    ["a command without a name", { command: [""] }],
    ["a grace for streams", { input, output, close, shutdown_grace_ms: 5 }],
    ["variables for streams", { input, output, close, env: {} }],
    ["a grace of 0", { command, shutdown_grace_ms: 0 }],
    ["a grace of half a millisecond", { command, shutdown_grace_ms: 0.5 }],
    ["a grace over the limit", { command, shutdown_grace_ms: 2147483648 }],
  ])("with %s are refused", (_, options) => {
    expect(() => delegate(options as never)).toThrow(/delegate|shutdown_grace_ms|env/);
  });

  it("may be at the limit", () => {
    delegate({ command, shutdown_grace_ms: 1 });
    delegate({ command, shutdown_grace_ms: 2147483647 });
  });
});

describe("initialize", () => {
  it("hands the full binding on, with a token of its own, when the host asks and not before", async () => {
    const far = new Far();
    const host = Host.serve(
      delegate({ ...far.options, capabilities: ["caisson.fs.v1"] } as DelegateOptions),
    );
    const binding = {
      version: 4,
      root: "/r",
      session: "s",
      identity: "i",
      environment: { A: "1" },
      require_existing_workspace: true,
      remove_workspace_on_exit: true,
      capabilities: ["caisson.bulk.v1", "caisson.errors.v1", "some.future.v9"],
      socket: { path: "h.sock", nonce: "n0nce" },
      unknown: { x: [1] },
    };
    expect(far.host.frames).toEqual([]);
    host.send({ id: "1", method: "initialize", data: binding });
    const asked = await far.asked("initialize");
    const { socket: _, ...rest } = binding;
    expect(asked.data).toEqual({ ...rest, capabilities: binding.capabilities.slice(0, 2) });
    far.host.line("welcome to this machine");
    const capabilities = ["caisson.fs.v1", "caisson.socket.v2", "caisson.bulk.v1"];
    far.host.line(
      JSON.stringify({
        id: asked.id,
        data: { version: 4, root: "/real", capabilities, socket_connected: true },
      }),
    );
    expect((await host.reply("1")).data).toEqual({
      version: 4,
      root: "/real",
      capabilities: ["caisson.fs.v1", "caisson.bulk.v1", "caisson.errors.v1"],
    });
    await host.end();
  });

  it.each([
    ["another version", { version: 3, root: "/r" }, "protocol 3"],
    ["no version", { root: "/r" }, "protocol"],
    ["a relative root", { version: 4, root: "r" }, "root"],
    ["no root", { version: 4 }, "root"],
    ["without the capability", { version: 4, root: "/r", capabilities: [] }, "caisson.fs.v1"],
    ["nothing", null, "protocol"],
  ])(
    "of a peer that answers with %s fails, and the peer is closed at once",
    async (_, data, words) => {
      const far = new Far();
      const host = Host.serve(
        delegate({ ...far.options, capabilities: ["caisson.fs.v1"] } as DelegateOptions),
      );
      const ready = host.initialize("/r");
      await far.answer("initialize", data);
      expect((await ready).error).toContain(words);
      await vi.waitFor(() => expect(far.close).toHaveBeenCalledTimes(1), 20_000);
      expect(host.ended).toBe(false);
      expect((await host.call("2", "execute", execute)).error).toContain("new connection");
      await host.end();
      expect(far.close).toHaveBeenCalledTimes(1);
    },
  );

  it.each([
    ["an error", (id: string, said: string) => JSON.stringify({ id, error: `what is ${said}` })],
    ["no frame", (_: string, said: string) => `{"id":"none","data":{}}\nwhat is ${said}`],
  ])("of a peer that says its token in %s does not tell it", async (_, answer) => {
    const far = new Far();
    const host = Host.serve(delegate(far.options));
    const ready = host.initialize("/r");
    const { id } = await far.asked("initialize");
    const said = Buffer.concat(far.heard).toString("utf8");
    const secret = /[0-9a-f]{64}/.exec(said)?.[0] ?? "";
    expect(secret).toHaveLength(64);
    far.host.line(answer(id, secret));
    const { error } = await ready;
    expect(error).toContain("what is [token]");
    expect(error).not.toContain(secret);
    await host.end();
  });

  it("of a peer that dies fails", async () => {
    const far = new Far();
    const host = Host.serve(delegate(far.options));
    const ready = host.initialize("/r");
    await far.asked("initialize");
    far.output.end();
    expect(await ready).toMatchObject({ detail: { kind: "backendUnavailable" } });
    await host.end();
  });

  it("that is cancelled is cancelled at the peer", async () => {
    const far = new Far();
    const host = Host.serve(delegate(far.options));
    const ready = host.initialize("/r");
    const { id } = await far.asked("initialize");
    host.send({ id: "init", method: "cancel" });
    expect((await far.asked("cancel")).id).toBe(id);
    far.host.line(JSON.stringify({ id, error: "it was cancelled" }));
    expect((await ready).error).toBe("it was cancelled");
    await host.end();
  });
});

describe("requests", () => {
  it("and replies pass unchanged, concurrently", async () => {
    const { far, host } = await delegated();
    const odd = '{"n":12345678901234567890,"f":1.50,"2":0,"1":0}';
    host.line(`{"id":"a","method":"some/future","token":"${token}","data":${odd}}`);
    host.send({ id: "b", method: "execute", data: execute });
    const [a, b] = [await far.asked("some/future"), await far.asked("execute")];
    far.host.line(JSON.stringify({ id: b.id, error: "no", detail: { kind: "denied", hint: "h" } }));
    far.host.line(`{"id":"${a.id}","data":${odd}}`);
    far.host.line('{"id":"nobody","data":1}');
    expect(await host.reply("b")).toMatchObject({
      error: "no",
      detail: { kind: "denied", hint: "h" },
    });
    expect((await host.reply("a")).data).toEqual(JSON.parse(odd));
    await host.end();
  });

  it("may be answered by the adapter itself", async () => {
    const { far, host } = await delegated([], (d) => ({
      ...d,
      methods: { execute: () => ({ is_error: true }) },
    }));
    expect((await host.call("1", "execute", execute)).data).toEqual({ is_error: true });
    expect(far.host.frames.some(({ method }) => method === "execute")).toBe(false);
    await host.end();
  });

  it("keep every digit on their way", async () => {
    const seen: string[] = [];
    const { far, host } = await delegated([], (d) => ({
      ...d,
      forward: async (method, data, context) => {
        seen.push(Buffer.from(data.bytes).toString());
        const reply = await d.forward(method, data, context);
        if ("bytes" in reply) seen.push(Buffer.from(reply.bytes).toString());
        return reply;
      },
    }));
    host.line(`{"id":"a","method":"x","token":"${token}","data":{"n":1.50}}`);
    const { id } = await far.asked("x");
    far.host.line(`{"id":"${id}","data":[12345678901234567890]}`);
    await host.reply("a");
    expect(seen).toEqual(['{"n":1.50}', "[12345678901234567890]"]);
    await host.end();
  });

  it("that are cancelled end when the peer has ended them", async () => {
    const { far, host } = await delegated();
    host.send({ id: "1", method: "execute", data: execute });
    const { id } = await far.asked("execute");
    host.send({ id: "1", method: "cancel" });
    expect((await far.asked("cancel")).id).toBe(id);
    await host.call("2", "nothing-yet", {}, { token: "bad" });
    expect(host.frames.some((f) => f.id === "1")).toBe(false);
    far.host.line(JSON.stringify({ id, data: { is_error: true } }));
    expect((await host.reply("1")).data).toEqual({ is_error: true });
    await host.end();
  });

  it("pass events, also those right behind initialize", async () => {
    const far = new Far();
    const host = Host.serve(delegate(far.options));
    const ready = host.initialize("/r");
    const { id } = await far.asked("initialize");
    const event = '{"id":"","method":"process","data":{"Type":"started","Process":{"id":"p"}}}';
    far.host.line(`${JSON.stringify({ id, data: { version: 4, root: "/r" } })}\n${event}`);
    await ready;
    expect((await host.next((f) => f.method === "process")).data).toEqual({
      Type: "started",
      Process: { id: "p" },
    });
    expect(host.frames.map((f) => f.id)).toEqual(["init", ""]);
    await host.end();
  });

  it("check the records of starts", async () => {
    const { far, host } = await delegated(["process.start.v1"]);
    host.send({
      id: "1",
      method: "process/start",
      data: { operation_id: "op", command: "c", actor: "s" },
    });
    await far.answer("process/start", { id: "p", operation_id: "other" });
    expect((await host.reply("1")).detail).toMatchObject({ kind: "outcomeUnknown" });
    await host.end();
  });
});

describe("callbacks", () => {
  it("go from the peer's program to the host and back", async () => {
    const { far, host } = await delegated();
    host.send({ id: "1", method: "run_code", data: program });
    const { id } = await far.asked("run_code");
    far.host.line(
      JSON.stringify({
        id: "c1",
        parent_id: id,
        method: "tool",
        data: { name: "grep", arguments: "{}" },
      }),
    );
    const asked = await host.next((f) => f.method === "tool");
    expect(asked).toMatchObject({ parentId: "1", data: { name: "grep", arguments: "{}" } });
    host.send({
      id: asked.id,
      method: "callback",
      data: { id: asked.id, data: { is_error: true } },
    });
    expect((await far.asked("callback")).data).toEqual({ id: "c1", data: { is_error: true } });
    far.host.line(
      JSON.stringify({
        id: "c2",
        parent_id: id,
        method: "tool",
        data: { name: "x", arguments: "{}" },
      }),
    );
    const second = await host.next((f) => f.method === "tool" && f.id !== asked.id);
    host.send({ id: second.id, method: "callback", data: { id: second.id, error: "refused" } });
    expect((await far.asked("callback")).data).toEqual({ id: "c2", error: "refused" });
    far.host.line(JSON.stringify({ id, data: { Logs: [] } }));
    await host.reply("1");
    far.host.line(JSON.stringify({ id: "c3", parent_id: id, method: "tool", data: {} }));
    expect((await far.asked("callback")).data).toMatchObject({
      id: "c3",
      error: expect.stringContaining("not running"),
    });
    host.send({ id: "2", method: "execute", data: execute });
    const other = await far.asked("execute");
    far.host.line(JSON.stringify({ id: "c4", parent_id: other.id, method: "tool", data: {} }));
    expect((await far.asked("callback")).data).toMatchObject({
      id: "c4",
      error: expect.stringContaining("not running"),
    });
    far.host.line(JSON.stringify({ id: other.id, data: {} }));
    await host.reply("2");
    await host.end();
  });
});

describe("bodies", () => {
  it("pass both ways, at the pace of whoever takes them", async () => {
    const { far, host } = await delegated(["caisson.bulk.v1"]);
    host.send({ id: "1", method: "fs/write_file", data: { path: "f" }, body: 6 });
    host.send({ id: "1", method: "body", raw: 6 }, Buffer.from("\n{abc}"));
    const { id, body } = await far.asked("fs/write_file");
    expect(body).toBe(6);
    expect((await far.asked("body")).raw).toBe("\n{abc}");
    const total = 12 << 20;
    far.host.line(JSON.stringify({ id, data: {}, body: total }));
    for (let i = 0; i < 4; i++) {
      far.host.line(JSON.stringify({ id, method: "body", raw: 1 << 20 }));
      far.output.write(Buffer.alloc(1 << 20, "y"));
    }
    const got = (): number =>
      host.frames.filter((f) => f.method === "body").reduce((n, f) => n + f.raw.length, 0);
    await host.next(() => got() === 4 << 20);
    expect((await far.asked("body_taken")).body).toBe(1 << 20);
    host.send({ id: "1", method: "cancel" });
    await far.asked("cancel");
    far.host.line(JSON.stringify({ id, method: "body", error: "stopped" }));
    expect((await host.next((f) => f.method === "body" && f.error !== "")).id).toBe("1");
    expect(await host.end()).toBeUndefined();
  });

  it("faster than they are taken are the peer's failure", async () => {
    const { far, host } = await delegated(["caisson.bulk.v1"]);
    host.send({ id: "1", method: "export/stream", data: { token: "t" } });
    const { id } = await far.asked("export/stream");
    far.host.line(JSON.stringify({ id, data: {}, body: 64 << 20 }));
    for (let i = 0; i < 16; i++) {
      far.host.line(JSON.stringify({ id, method: "body", raw: 1 << 20 }));
      far.output.write(Buffer.alloc(1 << 20));
    }
    expect((await host.done)?.message).toContain("faster than it is taken");
    expect(far.close).toHaveBeenCalledTimes(1);
  });
});

/** An adapter that outlives its peer. */
const staying = (d: Delegate): Backend => ({
  ...d,
  initialize: (binding, context) => d.initialize(binding, { ...context, fail: () => undefined }),
});

describe("a peer that fails", () => {
  const ways: [string, (far: Far) => void, string][] = [
    ["by its end", (far) => far.output.end(), "ended its output"],
    ["by its end in a frame", (far) => far.output.end('{"id":'), "middle of a frame"],
    ["by what is no frame", (far) => far.host.line("Segmentation fault"), "Segmentation fault"],
    ["by an error of its output", (far) => far.output.destroy(new Error("reset")), "reset"],
    [
      "by an error of its input",
      (far) => far.input.destroy(new Error("broken pipe")),
      "broken pipe",
    ],
  ];
  it.each(ways)(
    "%s is closed at once, and the adapter ends without another word",
    async (_, fail, words) => {
      const { far, host } = await delegated();
      for (const id of ["1", "2"]) host.send({ id, method: "execute", data: execute });
      await far.asked("execute");
      await far.asked("execute");
      fail(far);
      expect((await host.done)?.message).toContain(words); // the host's end is still open
      expect(far.close).toHaveBeenCalledTimes(1);
      expect(host.frames.map(({ id }) => id)).toEqual(["init"]);
    },
  );

  it.each(ways)("%s leaves what was in flight with an unknown outcome", async (_, fail, words) => {
    const { far, host } = await delegated([], staying);
    for (const id of ["1", "2"]) host.send({ id, method: "execute", data: execute });
    await far.asked("execute");
    await far.asked("execute");
    fail(far);
    for (const id of ["1", "2"]) {
      const got = await host.reply(id);
      expect(got.detail).toMatchObject({ kind: "outcomeUnknown" });
      expect(got.error).toContain(words);
    }
    expect(far.close).toHaveBeenCalledTimes(1);
    expect(await host.end()).toBeUndefined();
  });

  it("is not replaced: an adapter that stays answers with errors", async () => {
    const { far, host } = await delegated([], staying);
    far.output.end();
    await vi.waitFor(() => expect(far.close).toHaveBeenCalledTimes(1), 20_000);
    expect((await host.call("1", "execute", execute)).detail).toMatchObject({
      kind: "backendUnavailable",
    });
    expect(far.host.frames.filter(({ method }) => method === "initialize")).toHaveLength(1);
    expect(await host.end()).toBeUndefined();
  });
});

describe("a peer that ends after a shutdown", () => {
  it("has not failed, however late its reply passes the adapter", async () => {
    const late = gate();
    const { far, host } = await delegated([], (d) => ({
      ...d,
      forward: async (method, data, context) => {
        const reply = await d.forward(method, data, context);
        await late.promise;
        return reply;
      },
    }));
    host.send({ id: "1", method: "shutdown", data: { remove: false } });
    await far.answer("shutdown", {});
    far.output.end();
    await vi.waitFor(() => expect(far.close).toHaveBeenCalledTimes(1), 20_000);
    late.open();
    expect((await host.reply("1")).data).toEqual({});
    expect(await host.done).toBeUndefined();
  });
});

describe("the cancel grace", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it("is 35 s, and then the outcome is unknown and the peer has failed", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const failed = vi.fn();
    const [input, output] = [new PassThrough(), new PassThrough()];
    const peer = new Peer({
      input,
      output,
      token: "",
      onEvent: () => undefined,
      onFailure: failed,
    });
    const cancel = new AbortController();
    const settled = vi.fn();
    const call = peer.call({
      method: "execute",
      data: { bytes: Buffer.from("{}") } as never,
      body: new Uint8Array(0),
      signal: cancel.signal,
      invokeTool: () => Promise.reject(new Error("none")),
    });
    call.catch(settled);
    cancel.abort();
    await vi.advanceTimersByTimeAsync(34_999);
    expect(settled).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    await expect(call).rejects.toMatchObject({ kind: "outcomeUnknown" });
    expect(failed).toHaveBeenCalledTimes(1);
  });
});
