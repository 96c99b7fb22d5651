import { once } from "node:events";
import { PassThrough, type Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { delegate, type Initialize, run } from "../src/index.js";
import { alive } from "./alive.js";
import { Far } from "./far.js";
import { collect, Host } from "./host.js";

const program = { program: { code: "", tools: [] }, timeout_ms: 0, actor: "s" };

describe("a command", () => {
  /** A peer of a few lines of JavaScript. */
  const script = (body: string): string[] => [
    process.execPath,
    "--input-type=module",
    "--eval",
    `import { createInterface } from "node:readline";
     const say = (o) => process.stdout.write(JSON.stringify(o) + "\\n");
     const lines = createInterface({ input: process.stdin });
     lines.on("line", (l) => {
       const { id, method, data } = JSON.parse(l);
       if (method === "initialize") say({ id, data: { version: 4, root: data.root } });
       else handle(id, method, data);
     });
     let handle = (id) => say({ id, data: process.env });
     ${body}`,
  ];

  it("is started with the adapter's variables, or with those given and no other", async () => {
    process.env["CAISSON_ADAPTER_TEST"] = "inherited";
    try {
      for (const [env, expected] of [
        [undefined, { CAISSON_ADAPTER_TEST: "inherited" }],
        [{ ONLY: "this" }, { ONLY: "this" }],
      ] as const) {
        const host = Host.serve(delegate({ command: script(""), ...(env && { env }) }));
        await host.initialize("/r");
        const got = (await host.call("1", "x", {})).data as Record<string, string>;
        expect(got).toMatchObject(expected);
        if (env !== undefined) expect(got["CAISSON_ADAPTER_TEST"]).toBeUndefined();
        expect(await host.end()).toBeUndefined();
      }
    } finally {
      delete process.env["CAISSON_ADAPTER_TEST"];
    }
  });

  it("that does not end is killed in time, also when memory is collected meanwhile", async () => {
    const stubborn = script("lines.on('close', () => setInterval(() => undefined, 1000));");
    const host = Host.serve(delegate({ command: stubborn, shutdown_grace_ms: 300 }));
    await host.initialize("/r");
    const collecting = setInterval(collect, 20);
    const error = await host.end();
    clearInterval(collecting);
    expect(error?.message).toContain("was killed");
  });

  it("that is not there fails initialize", async () => {
    const host = Host.serve(delegate({ command: ["/nonexistent/worker"] }));
    expect(await host.initialize("/r")).toMatchObject({
      error: expect.stringContaining("/nonexistent/worker cannot be started"),
      detail: { kind: "backendUnavailable" },
    });
    await host.end();
  });

  it("that exits with an error says so", async () => {
    const host = Host.serve(
      delegate({ command: script("lines.on('close', () => process.exit(3));") }),
    );
    await host.initialize("/r");
    expect((await host.end())?.message).toContain("exit code 3");
    const dying = Host.serve(delegate({ command: script("handle = () => process.exit(4);") }));
    await dying.initialize("/r");
    dying.send({ id: "1", method: "x", data: {} });
    expect((await dying.done)?.message).toContain("exit code 4");
  });

  it("that fails and lives on is told of at once, not when its grace is over", async () => {
    const babbling = `setInterval(() => undefined, 1000);
      handle = (id, method) =>
        method === "pid" ? say({ id, data: process.pid }) : process.stdout.write("no frame\\n");`;
    const audit = fileURLToPath(new URL("../examples/dist/audit/main.js", import.meta.url));
    const host = Host.start([
      process.execPath,
      audit,
      ...["--log", "/dev/null", "--grace-ms", "60000"],
      "--",
      ...script(babbling),
    ]);
    expect((await host.initialize("/r")).error).toBe("");
    const pid = (await host.call("1", "pid", {})).data as number;
    const ended = once(host.child.stdout as Readable, "end");
    host.send({ id: "2", method: "x", data: {} });
    await ended;
    expect(await alive(pid)).toBe(true); // it has its grace
    process.kill(pid, "SIGKILL");
    expect((await host.done)?.message).toContain("ended by SIGKILL");
  });

  it("that does not end in its grace is killed", async () => {
    const stubborn =
      "setInterval(() => undefined, 1000); handle = (id) => say({ id, data: process.pid });";
    const host = Host.serve(delegate({ command: script(stubborn), shutdown_grace_ms: 100 }));
    await host.initialize("/r");
    const pid = Number((await host.call("1", "x", {})).data);
    expect(await host.end()).toMatchObject({
      kind: "outcomeUnknown",
      message: expect.stringContaining("killed"),
    });
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });

  it("is killed when the adapter's own budget is spent", async () => {
    const host = Host.serve(delegate({ command: script("setInterval(() => undefined, 1000);") }), {
      shutdown_timeout_ms: 200,
    });
    await host.initialize("/r");
    expect((await host.end())?.message).toContain("in time");
  });

  it("is heard to its last event", async () => {
    const event = "{ id: '', method: 'process', data: { Type: 'stopped', Process: { id: 'p' } } }";
    const last = `lines.on("close", () => say(${event}));`;
    const host = Host.serve(delegate({ command: script(last) }));
    await host.initialize("/r");
    expect(await host.end()).toBeUndefined();
    expect((await host.next((f) => f.method === "process")).data).toMatchObject({
      Type: "stopped",
    });
  });

  it("ends after a shutdown without that being a failure", async () => {
    const host = Host.serve(
      delegate({ command: script("handle = (id) => { say({ id, data: {} }); lines.close(); };") }),
    );
    await host.initialize("/r");
    expect((await host.call("1", "shutdown", { remove: false })).error).toBe("");
    expect(await host.done).toBeUndefined();
  });

  it("may be an adapter that delegates", async () => {
    const inner = new Far();
    const [input, output] = [new PassThrough(), new PassThrough()];
    const middle = run(delegate(inner.options), { input, output });
    const close = (): Promise<void> => middle;
    const host = Host.serve(delegate({ input, output, close }));
    const ready = host.initialize("/r");
    await inner.answer("initialize", { version: 4, root: "/far" } satisfies Partial<Initialize>);
    expect((await ready).data).toMatchObject({ root: "/far" });
    host.send({ id: "1", method: "run_code", data: program });
    const { id } = await inner.asked("run_code");
    inner.host.line(
      JSON.stringify({
        id: "c",
        parent_id: id,
        method: "tool",
        data: { name: "t", arguments: "{}" },
      }),
    );
    const { id: callback } = await host.next((f) => f.method === "tool");
    host.send({
      id: callback,
      method: "callback",
      data: { id: callback, data: { is_error: false } },
    });
    expect((await inner.asked("callback")).data).toEqual({ id: "c", data: { is_error: false } });
    host.send({ id: "1", method: "cancel" });
    expect((await inner.asked("cancel")).id).toBe(id);
    inner.host.line(JSON.stringify({ id, error: "over" }));
    expect((await host.reply("1")).error).toBe("over");
    expect(await host.end()).toBeUndefined();
    expect(inner.close).toHaveBeenCalledTimes(1);
  });
});
