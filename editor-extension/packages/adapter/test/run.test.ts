import { PassThrough, Writable } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import {
  AdapterError,
  type Backend,
  type Context,
  type Process,
  RawJSON,
  run,
  WithBody,
  ZERO_TIME,
} from "../src/index.js";
import { Host, token } from "./host.js";

/** A backend that does nothing. */
const bare: Backend = { initialize: ({ root }) => ({ root }) };

/** A promise and what settles it. */
function gate(): { promise: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

/** Rejects when the signal aborts. */
const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

const execute = { call: { name: "t", arguments: "{}" }, actor: "s" };

describe("initialize", () => {
  it("answers with version, root and capabilities", async () => {
    const host = Host.serve({
      initialize: () => ({ root: "/real", capabilities: ["caisson.limits.v1"] }),
    });
    expect((await host.initialize("/link")).data).toEqual({
      version: 4,
      root: "/real",
      capabilities: ["caisson.limits.v1", "caisson.errors.v1"],
    });
    expect(await host.end()).toBeUndefined();
  });

  it.each([
    ["no data", undefined, "without data"],
    ["another version", { version: 3, root: "/r", session: "s" }, "protocol 3"],
    ["a relative root", { version: 4, root: "r", session: "s" }, "root"],
    ["no root", { version: 4, session: "s" }, "root"],
    ["a session of two components", { version: 4, root: "/r", session: "a/b" }, "session"],
    ["the session ..", { version: 4, root: "/r", session: ".." }, "session"],
    ["the session .", { version: 4, root: "/r", session: "." }, "session"],
    ["a bad identity", { version: 4, root: "/r", session: "s", identity: "../x" }, "identity"],
    [
      "an environment of numbers",
      { version: 4, root: "/r", session: "s", environment: { A: 1 } },
      "environment",
    ],
    [
      "a wish that is a word",
      { version: 4, root: "/r", session: "s", require_existing_workspace: "yes" },
      "require",
    ],
  ])(
    "refuses %s before anything runs, and the connection is of no more use",
    async (_, data, words) => {
      const initialize = vi.fn(bare.initialize);
      const host = Host.serve({ ...bare, initialize });
      expect((await host.call("1", "initialize", data)).error).toContain(words);
      expect(
        (await host.call("2", "initialize", { version: 4, root: "/r", session: "s" })).error,
      ).toContain("new connection");
      expect((await host.call("3", "execute", execute)).error).toContain("new connection");
      expect(initialize).not.toHaveBeenCalled();
      await host.end();
    },
  );

  it("comes before everything else", async () => {
    const go = gate();
    const host = Host.serve({
      ...bare,
      initialize: async ({ root }) => {
        await go.promise;
        return { root };
      },
    });
    expect((await host.call("1", "execute", execute)).error).toContain("before initialize");
    host.send({ id: "2", method: "initialize", data: { version: 4, root: "/r", session: "s" } });
    expect((await host.call("3", "process/list", {})).error).toContain("before initialize");
    expect((await host.call("4", "initialize", {})).error).toContain("before initialize");
    go.open();
    expect((await host.reply("2")).error).toBe("");
    await host.end();
  });

  it("may be repeated when it is the same, and is handled once", async () => {
    const initialize = vi.fn(bare.initialize);
    const host = Host.serve({ ...bare, initialize });
    const binding = {
      identity: "i",
      environment: { A: "1", B: "2" },
      remove_workspace_on_exit: true,
    };
    const first = await host.initialize("/r", binding);
    const again = (id: string, more: object) =>
      host.call(id, "initialize", { version: 4, root: "/r", session: "s", ...binding, ...more });
    expect((await again("1", { environment: { B: "2", A: "1" } })).data).toEqual(first.data);
    expect(
      (await again("2", { environment: undefined, require_existing_workspace: true })).data,
    ).toEqual(first.data);
    const others = [
      { root: "/x" },
      { session: "t" },
      { identity: "j" },
      { environment: { A: "1" } },
      { environment: { A: "1", B: "3" } },
      { environment: {} },
      { remove_workspace_on_exit: false },
    ];
    for (const [i, other] of others.entries()) {
      const got = await again(`o${i}`, other);
      expect(got.detail).toMatchObject({ kind: "denied", path: Object.keys(other)[0] });
    }
    expect((await again("v", { version: 5 })).detail).toMatchObject({ kind: "protocolMismatch" });
    expect((await again("3", {})).data).toEqual(first.data);
    expect(initialize).toHaveBeenCalledTimes(1);
    await host.end();
  });

  it("that is cancelled or fails ends the use of the connection, and is closed", async () => {
    const close = vi.fn();
    const host = Host.serve({ initialize: (_, { signal }) => aborted(signal), close });
    host.send({ id: "1", method: "initialize", data: { version: 4, root: "/r", session: "s" } });
    host.send({ id: "1", method: "cancel" });
    expect((await host.reply("1")).error).toContain("cancelled");
    expect(
      (await host.call("2", "initialize", { version: 4, root: "/r", session: "s" })).error,
    ).toContain("new connection");
    await host.end();
    expect(close).toHaveBeenCalledTimes(1);
  });

  it.each([
    ["process.start.v1", {}, "process/start"],
    ["process.start.v1", { "process/start": () => record, "process/list": () => [] }, "close"],
    ["caisson.fs.v1", {}, "fs/stat"],
    ["caisson.socket.v1", {}, "socket"],
  ])(
    "refuses a backend that announces %s without what it promises",
    async (capability, methods, words) => {
      const host = Host.serve({
        initialize: ({ root }) => ({ root, capabilities: [capability] }),
        methods,
      });
      expect((await host.initialize("/r")).error).toContain(words);
      await host.end();
    },
  );
});

const record: Process = {
  id: "p1",
  operation_id: "op",
  owner_kind: "main_agent",
  owner_id: "s",
  root_thread_id: "s",
  lifecycle: "session",
  status: "running",
  pid: 1,
  pgid: 1,
  command: "c",
  cwd: "/r",
  started_at: ZERO_TIME,
  updated_at: ZERO_TIME,
  stopped_at: ZERO_TIME,
  exit_code: -1,
};

describe("the token", () => {
  it("must come with every frame once it is fixed", async () => {
    const host = Host.serve({ ...bare, methods: { execute: (_, { signal }) => aborted(signal) } });
    await host.initialize("/r");
    for (const [i, bad] of ["", token.slice(1), `${token.slice(1)}f`, `${token}0`].entries()) {
      expect((await host.call(`t${i}`, "execute", execute, { token: bad })).detail).toMatchObject({
        kind: "denied",
      });
    }
    host.send({ id: "1", method: "execute", data: execute });
    host.send({ id: "1", method: "cancel", token: "" });
    expect((await host.reply("1")).error).toContain("token");
    host.frames.length = 0;
    host.send({ id: "1", method: "cancel" });
    expect((await host.reply("1")).detail).toMatchObject({ kind: "cancelled" });
    await host.end();
  });

  it("that is short protects nothing", async () => {
    const host = Host.serve({ ...bare, methods: { execute: () => ({}) } });
    await host.call(
      "1",
      "initialize",
      { version: 4, root: "/r", session: "s" },
      { token: "short" },
    );
    expect((await host.call("2", "execute", execute, { token: "" })).error).toBe("");
    await host.end();
  });
});

describe("requests", () => {
  it("run concurrently and are answered in any order", async () => {
    const gates = new Map([
      ["a", gate()],
      ["b", gate()],
    ]);
    const host = Host.serve({
      ...bare,
      methods: {
        execute: async ({ call }) => {
          await gates.get(call.name)?.promise;
          return { content: [{ type: "text", text: call.name }] };
        },
      },
    });
    await host.initialize("/r");
    for (const name of ["a", "b"])
      host.send({
        id: name,
        method: "execute",
        data: { ...execute, call: { name, arguments: "{}" } },
      });
    gates.get("b")?.open();
    await host.reply("b");
    expect(host.frames.some(({ id }) => id === "a")).toBe(false);
    expect((await host.call("a", "execute", execute)).error).toContain("still running");
    host.frames.length = 0;
    gates.get("a")?.open();
    expect((await host.reply("a")).data).toEqual({ content: [{ type: "text", text: "a" }] });
    expect((await host.call("a", "execute", execute)).error).toBe(""); // the id is free again
    await host.end();
  });

  it.each([
    ["without an id", { method: "execute", data: execute }, "", "without an id"],
    ["without a method", { id: "1" }, "1", "without a method"],
    ["of an unknown method", { id: "1", method: "toString", data: {} }, "1", "unknown method"],
    [
      "of a method that is not there",
      { id: "1", method: "process/list", data: {} },
      "1",
      "unknown method",
    ],
    ["whose data is no object", { id: "1", method: "execute", data: [] }, "1", "no object"],
    ["without a tool", { id: "1", method: "execute", data: { actor: "s" } }, "1", "name"],
    [
      "without an actor",
      { id: "1", method: "execute", data: { ...execute, actor: "" } },
      "1",
      "actor",
    ],
    [
      "whose arguments are no text",
      { id: "1", method: "execute", data: { ...execute, call: { name: "t", arguments: {} } } },
      "1",
      "arguments",
    ],
    [
      "whose arguments are no object",
      { id: "1", method: "execute", data: { ...execute, call: { name: "t", arguments: "[]" } } },
      "1",
      "arguments",
    ],
    [
      "in an unknown mode",
      { id: "1", method: "execute", data: { ...execute, permission_mode: "root" } },
      "1",
      "mode",
    ],
  ])("%s are answered with an error", async (_, frame, id, words) => {
    const called = vi.fn(() => ({}));
    const host = Host.serve({ ...bare, methods: { execute: called } });
    await host.initialize("/r");
    host.send(frame);
    expect((await host.next((f) => f.id === id && f.error !== "")).error).toContain(words);
    expect(called).not.toHaveBeenCalled();
    expect(await host.end()).toBeUndefined();
  });

  it("beyond 256 are refused, and nothing piles up", async () => {
    const host = Host.serve({ ...bare, methods: { execute: (_, { signal }) => aborted(signal) } });
    await host.initialize("/r");
    for (let i = 0; i <= 256; i++) host.send({ id: `r${i}`, method: "execute", data: execute });
    expect((await host.reply("r256")).detail).toMatchObject({
      kind: "overloaded",
      retryable: true,
    });
    host.send({ id: "r0", method: "cancel" });
    await host.reply("r0");
    host.send({ id: "again", method: "execute", data: execute });
    host.send({ id: "again", method: "cancel" });
    expect((await host.reply("again")).detail).toMatchObject({ kind: "cancelled" });
    await host.end();
  });

  it("keep the kind of an error for a host that understands it, and its text for one that does not", async () => {
    const backend: Backend = {
      ...bare,
      methods: {
        execute: () => {
          throw new AdapterError("pathOutsideRoot", "no", {
            hint: "h",
            path: "p",
            retryable: true,
          });
        },
        "process/list": () => {
          throw new Error("");
        },
      },
    };
    const host = Host.serve(backend);
    await host.initialize("/r");
    expect(await host.call("1", "execute", execute)).toMatchObject({
      error: "no",
      detail: { kind: "pathOutsideRoot", hint: "h", path: "p", retryable: true },
    });
    expect((await host.call("2", "process/list", {})).error).not.toBe("");
    await host.end();
    const plain = Host.serve(backend);
    await plain.initialize("/r", { capabilities: [] });
    expect(await plain.call("1", "execute", execute)).toMatchObject({
      error: "no",
      detail: undefined,
    });
    await plain.end();
  });

  it.each([
    ["128 parts", { content: new Array(129).fill({ type: "text", text: "" }) }],
    ["2 MiB of data", { content: [{ type: "image", data: "A".repeat(2.8e6) }] }],
    ["3 MiB", { structured_content: "x".repeat(3 * 1024 * 1024) }],
  ] as const)("whose result has more than %s fail", async (_, result) => {
    const host = Host.serve({ ...bare, methods: { execute: () => ({ ...result }) as never } });
    await host.initialize("/r");
    expect((await host.call("1", "execute", execute)).error).toContain("more than may be sent");
    await host.end();
  });

  it("whose reply is too long or no JSON fail alone", async () => {
    const replies: unknown[] = [{ x: "x".repeat(17 << 20) }, { x: 1n }, "fine"];
    const host = Host.serve({ ...bare, forward: async () => replies.shift() });
    await host.initialize("/r");
    expect((await host.call("1", "x", {})).error).toContain("16 MiB");
    expect((await host.call("2", "x", {})).error).toContain("JSON");
    expect((await host.call("3", "x", {})).data).toBe("fine");
    expect(await host.end()).toBeUndefined();
  });
});

describe("cancel", () => {
  it("aborts the signal of its request only, which is answered when its handler has ended", async () => {
    const ended = gate();
    const host = Host.serve({
      ...bare,
      methods: {
        execute: async ({ call }, { signal }) => {
          if (call.name === "other") return aborted(signal);
          await aborted(signal).catch(() => undefined);
          await ended.promise;
          return { is_error: true };
        },
      },
    });
    await host.initialize("/r");
    for (const id of ["1", "other"])
      host.send({
        id,
        method: "execute",
        data: { ...execute, call: { name: id, arguments: "{}" } },
      });
    host.send({ id: "nobody", method: "cancel" });
    host.send({ id: "1", method: "cancel" });
    host.send({ id: "1", method: "cancel" });
    await host.call("2", "nothing", {}); // everything before it was taken
    expect(host.frames.some(({ id }) => id === "1" || id === "other" || id === "nobody")).toBe(
      false,
    );
    ended.open();
    expect((await host.reply("1")).data).toEqual({ is_error: true });
    expect(host.frames.some(({ id }) => id === "other")).toBe(false);
    expect(await host.end()).toBeUndefined();
    expect(host.frames.filter(({ id }) => id === "1")).toHaveLength(1);
  });
});

describe("callbacks", () => {
  const program = { program: { code: "", tools: [] }, timeout_ms: 0, actor: "s" };

  /** Serves a program that calls as it is told to. */
  async function running(code: (context: Context) => Promise<unknown>): Promise<Host> {
    const host = Host.serve({
      ...bare,
      methods: {
        run_code: async (_, context) => ({ Logs: [], Value: await code(context) }),
        execute: async (_, context) => {
          await context.invokeTool({ name: "t", arguments: "{}" });
          return {};
        },
      },
    });
    await host.initialize("/r");
    host.send({ id: "1", method: "run_code", data: program });
    return host;
  }

  it("come from a program, and their answers reach it", async () => {
    const host = await running(async (c) => {
      const [one, two, raw] = await Promise.allSettled([
        c.invokeTool({ name: "one", arguments: "{}" }),
        c.invokeTool({ name: "two", arguments: "{}" }),
        c.invokeTool(new RawJSON(Buffer.from('{"name":"raw","arguments":"{}","n":1.0}'))),
      ]);
      const bytes = raw.status === "fulfilled" ? Buffer.from(raw.value.bytes).toString() : "";
      return [
        one.status === "fulfilled" && one.value,
        two.status === "rejected" && String(two.reason),
        bytes,
      ];
    });
    const named = (name: string) =>
      host.next((f) => f.method === "tool" && (f.data as { name?: string }).name === name);
    const [one, two, raw] = [await named("one"), await named("two"), await named("raw")];
    expect(new Set([one.id, two.id, raw.id, "1"]).size).toBe(4);
    for (const call of [one, two, raw]) expect(call.parentId).toBe("1");
    host.send({ id: "nobody", method: "callback", data: { id: "nobody", data: {} } });
    host.send({ id: two.id, method: "callback", data: { id: two.id, error: "refused" } });
    host.line(
      `{"token":"${token}","id":"${raw.id}","method":"callback","data":{"id":"${raw.id}","data":{"n":2.0}}}`,
    );
    host.send({ id: one.id, method: "callback", data: { id: one.id, data: { is_error: true } } });
    expect((await host.reply("1")).data).toEqual({
      Logs: [],
      Value: [{ is_error: true }, "Error: refused", '{"n":2.0}'],
    });
    await host.end();
  });

  it("whose answer has another id inside fail", async () => {
    const host = await running((c) => c.invokeTool({ name: "t", arguments: "{}" }));
    const { id } = await host.next((f) => f.method === "tool");
    host.send({ id, method: "callback", data: { id: "other", data: {} } });
    expect((await host.reply("1")).error).toContain("another id");
    await host.end();
  });

  it("end with the program's cancel, and with a signal of its own", async () => {
    const own = new AbortController();
    const host = await running(async (c) => {
      await c.invokeTool({ name: "t", arguments: "{}" }, own.signal).catch(() => undefined);
      return c.invokeTool({ name: "u", arguments: "{}" });
    });
    await host.next((f) => f.method === "tool");
    own.abort();
    await host.next((f) => f.method === "tool" && (f.data as { name?: string }).name === "u");
    host.send({ id: "1", method: "cancel" });
    expect((await host.reply("1")).detail).toMatchObject({ kind: "cancelled" });
    await host.end();
  });

  it("are refused outside of a live program", async () => {
    let late: Context | undefined;
    const host = await running(async (c) => {
      late = c;
    });
    await host.reply("1");
    await expect(late?.invokeTool({ name: "t", arguments: "{}" })).rejects.toThrow("has ended");
    expect((await host.call("2", "execute", execute)).detail).toMatchObject({
      kind: "unsupported",
    });
    expect(host.frames.some(({ method }) => method === "tool")).toBe(false);
    await host.end();
  });
});

describe("processes", () => {
  it("events follow the reply to initialize", async () => {
    const host = Host.serve({
      initialize: ({ root }, { emitProcess }) => {
        emitProcess({ Type: "failed", Process: record });
        return { root };
      },
      methods: {
        "process/get": (_, { emitProcess }) => {
          emitProcess({ Type: "updated", Cause: "", Process: record });
          return record;
        },
      },
    });
    await host.initialize("/r");
    await host.call("1", "process/get", { id: "p1" });
    expect(host.frames.map(({ id, method }) => id || method)).toEqual([
      "init",
      "process",
      "process",
      "1",
    ]);
    expect(host.frames[2]?.data).toEqual({ Type: "updated", Cause: "", Process: record });
    await host.end();
  });

  it.each([
    ["a start without an operation", {}, record, "operation id is missing", "invalidParams"],
    [
      "a reply of another operation",
      { operation_id: "x" },
      record,
      "another operation",
      "outcomeUnknown",
    ],
    [
      "a reply without one",
      { operation_id: "op" },
      { ...record, operation_id: undefined },
      "another operation",
      "outcomeUnknown",
    ],
    ["a reply that is no record", { operation_id: "op" }, [], "no record", "outcomeUnknown"],
  ])("refuses %s", async (_, data, reply, words, kind) => {
    const backend: Backend = {
      initialize: ({ root }) => ({ root, capabilities: ["process.start.v1"] }),
      methods: { "process/start": () => reply as never, "process/list": () => [] },
      close: () => undefined,
    };
    for (const b of [backend, { ...backend, methods: {}, forward: async () => reply }]) {
      const host = Host.serve(b);
      await host.initialize("/r");
      const got = await host.call("1", "process/start", data);
      expect(got.error).toContain(words);
      expect(got.detail).toMatchObject({ kind });
      await host.end();
    }
  });

  it("refuses durable records that lost their operation", async () => {
    const lists = [
      [record],
      [{ ...record, operation_id: "other" }],
      [{ ...record, id: "p2", operation_id: undefined }],
    ];
    const host = Host.serve({
      initialize: ({ root }) => ({ root, capabilities: ["process.start.v1"] }),
      methods: { "process/start": () => record, "process/list": () => lists.shift() as never },
      close: () => undefined,
    });
    await host.initialize("/r");
    expect(
      (await host.call("1", "process/start", { operation_id: "op", command: "c" })).error,
    ).toBe("");
    expect((await host.call("2", "process/list", {})).data).toEqual([record]);
    expect((await host.call("3", "process/list", {})).error).toContain(
      "does not name its operation",
    );
    expect((await host.call("4", "process/list", {})).error).toBe(""); // begun by a tool
    await host.end();
  });
});

describe("bodies", () => {
  const backend: Backend = {
    initialize: ({ root }) => ({ root, capabilities: ["caisson.bulk.v1"] }),
    methods: { execute: ({ call }) => ({ structured_content: call.arguments }) },
    forward: async (method, _, { body }) =>
      method === "echo"
        ? new WithBody({ size: body.length }, body)
        : new WithBody(null, { size: 20 << 20, content: megabytes(20) }),
  };

  async function* megabytes(n: number): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < n; i++) yield Buffer.alloc(1 << 20, "x");
  }

  it("come with requests in pieces, and go with replies", async () => {
    const host = Host.serve(backend);
    await host.initialize("/r");
    host.send({ id: "1", method: "echo", data: {}, body: 5 });
    host.send({ id: "1", method: "body", raw: 2 }, Buffer.from("\n{"));
    host.send({
      id: "2",
      method: "execute",
      data: { ...execute, call: { name: "t", arguments: "" } },
      body: 8,
    });
    host.send({ id: "2", method: "body", raw: 8 }, Buffer.from('{"a": 1}'));
    expect((await host.reply("2")).data).toEqual({ structured_content: '{"a": 1}' });
    host.send({ id: "1", method: "body", raw: 3 }, Buffer.from("xyz"));
    expect(await host.reply("1")).toMatchObject({ body: 5, data: { size: 5 } });
    expect((await host.next((f) => f.id === "1" && f.method === "body")).raw).toBe("\n{xyz");
    await host.end();
  });

  it("are never more than 4 MiB ahead, and end with a cancel", async () => {
    const host = Host.serve(backend);
    await host.initialize("/r");
    await host.call("1", "stream", {});
    const got = (): number =>
      host.frames.filter((f) => f.method === "body").reduce((n, f) => n + f.raw.length, 0);
    await host.next(() => got() === 4 << 20);
    await host.call("2", "echo", {});
    expect(got()).toBe(4 << 20);
    host.send({ id: "1", method: "body_taken", body: 1 << 20 });
    await host.next(() => got() === 5 << 20);
    host.send({ id: "1", method: "cancel" });
    expect((await host.next((f) => f.method === "body" && f.error !== "")).id).toBe("1");
    expect(got()).toBe(5 << 20);
    await host.end();
  });

  it.each([
    ["more than was announced", { raw: 3 }, "abc"],
    ["an empty piece", {}, ""],
  ])("with %s end the connection", async (_, piece, raw) => {
    const host = Host.serve(backend);
    await host.initialize("/r");
    host.send({ id: "1", method: "echo", data: {}, body: 2 });
    host.send({ id: "1", method: "body", ...piece }, Buffer.from(raw));
    expect((await host.done)?.message).toContain("a piece of");
  });

  it("that do not come fail their request alone", async () => {
    const host = Host.serve(backend);
    await host.initialize("/r");
    host.send({ id: "1", method: "echo", data: {}, body: 2 });
    host.send({ id: "1", method: "body", error: "disk" });
    expect((await host.reply("1")).error).toContain("disk");
    expect((await host.call("2", "echo", {}, { body: 65 << 20 })).error).toContain("at most");
    host.send({ id: "3", method: "echo", data: {}, body: 2 });
    host.send({ id: "3", method: "cancel" });
    expect((await host.reply("3")).detail).toMatchObject({ kind: "cancelled" });
    await host.end();
  });

  it("do not exist for a host that does not know them", async () => {
    const host = Host.serve(backend);
    await host.initialize("/r", { capabilities: [] });
    expect((await host.call("1", "echo", {}, { body: 100 })).error).toBe("");
    expect((await host.call("2", "stream", {})).error).toContain("cannot take");
    await host.end();
  });
});

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
    await vi.waitFor(() => expect(log).toEqual(["cancelled"]));
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
