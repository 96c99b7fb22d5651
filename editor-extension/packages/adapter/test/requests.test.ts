import { describe, expect, it, vi } from "vitest";
import { AdapterError, type Backend, type Context, RawJSON } from "../src/index.js";
import { aborted, bare, execute, gate, record } from "./backend.js";
import { Host, token } from "./host.js";

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

  it("come as many at once as there are, and so do listeners, without a warning", async () => {
    const warnings: Error[] = [];
    const warn = (warning: Error): void => void warnings.push(warning);
    process.on("warning", warn);
    const host = await running(async (c) => {
      const many = Array.from({ length: 20 });
      for (const _ of many) {
        c.signal.addEventListener("abort", () => undefined);
        c.lifetime.addEventListener("abort", () => undefined);
      }
      return Promise.all(many.map(() => c.invokeTool({ name: "t", arguments: "{}" })));
    });
    await vi.waitFor(
      () => expect(host.frames.filter(({ method }) => method === "tool")).toHaveLength(20),
      20_000,
    );
    for (const { id } of host.frames.filter(({ method }) => method === "tool"))
      host.send({ id, method: "callback", data: { id, data: {} } });
    expect((await host.reply("1")).error).toBe("");
    await host.end();
    process.off("warning", warn);
    expect(warnings).toEqual([]);
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
