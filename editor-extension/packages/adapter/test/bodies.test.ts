import { describe, expect, it } from "vitest";
import { type Backend, WithBody } from "../src/index.js";
import { execute } from "./backend.js";
import { Host } from "./host.js";

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
