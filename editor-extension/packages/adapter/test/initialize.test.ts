import { describe, expect, it, vi } from "vitest";
import { aborted, bare, execute, gate, record } from "./backend.js";
import { Host, token } from "./host.js";

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
    ["caisson.socket.v2", {}, "socket"],
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
