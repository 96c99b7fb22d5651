import {
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Process, ProcessRead } from "../src/index.js";
import { alive } from "./alive.js";
import { type Got, Host } from "./host.js";

const program = (name: string): string =>
  fileURLToPath(new URL(`../examples/dist/${name}/main.js`, import.meta.url));

let directory: string;
let root: string;
beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "caisson-adapter-")));
  root = join(directory, "workspace");
});
afterEach(() => rm(directory, { recursive: true, force: true }));

describe("files", () => {
  const start = async (more: object = {}, env?: NodeJS.ProcessEnv) => {
    const host = Host.start(
      [process.execPath, program("files"), "--state", join(directory, "state")],
      env,
    );
    const got = await host.initialize(root, more);
    expect(got).toMatchObject({
      error: "",
      data: { capabilities: ["process.start.v1", "caisson.errors.v1"] },
    });
    return host;
  };
  const begin = async (host: Host, id: string, command: string): Promise<Process> => {
    const data = { operation_id: `op-${id}`, command, actor: "s", permission_mode: "unconfined" };
    const got = await host.call(id, "process/start", data);
    expect(got.error).toBe("");
    return got.data as Process;
  };
  const read = async (
    host: Host,
    id: string,
    process: string,
    options: object,
  ): Promise<ProcessRead> =>
    (await host.call(id, "process/read", { id: process, options })).data as ProcessRead;
  const event = (type: string, id?: string) => (f: Got) => {
    const { Type, Process } = (f.data ?? {}) as { Type?: string; Process?: Process };
    return f.method === "process" && Type === type && (id === undefined || Process?.id === id);
  };

  it("keeps the workspace as the binding says", async () => {
    const host = await start({ remove_workspace_on_exit: true });
    expect((await stat(root)).mode & 0o777).toBe(0o700);
    expect(await host.end()).toBeUndefined();
    await expect(stat(root)).rejects.toThrow("ENOENT");
    const next = Host.start([
      process.execPath,
      program("files"),
      "--state",
      join(directory, "state"),
    ]);
    const got = await next.initialize(root, { require_existing_workspace: true });
    expect(got.detail).toMatchObject({ kind: "environmentLost" });
    await next.end();
    await expect(stat(root)).rejects.toThrow("ENOENT");
  });

  it("follows no link out of the workspace", async () => {
    const host = await start();
    await writeFile(join(directory, "secret"), "secret");
    await symlink(directory, join(root, "up"));
    await symlink(join(directory, "fresh"), join(root, "dangling"));
    await symlink("loop", join(root, "loop"));
    await symlink("real", join(root, "inside"));
    await host.tool("0", "write_file", { path: "real/f", content: "x" });
    for (const [i, path] of ["up/secret", "up/new", "dangling", "loop", "up/a/b"].entries()) {
      await expect(host.tool(`r${i}`, "read_file", { path })).rejects.toThrow();
      await expect(host.tool(`w${i}`, "write_file", { path, content: "y" })).rejects.toThrow();
    }
    expect((await readdir(directory)).sort()).toEqual(["secret", "state", "workspace"]);
    expect(await host.tool("1", "read_file", { path: "inside/f" })).toMatchObject({ content: "x" });
    await host.tool("2", "write_file", { path: "inside/g", content: "y" });
    expect(await readFile(join(root, "real/g"), "utf8")).toBe("y");
    await host.end();
  });

  it.each(["", "standard", "read_only"])(
    "refuses commands in the mode %j, and runs nothing",
    async (mode) => {
      const host = await start();
      await expect(host.tool("1", "bash", { command: "touch ran" }, mode)).rejects.toThrow(
        "cannot confine",
      );
      await expect(host.tool("2", "git", { subcommand: "init" }, mode)).rejects.toThrow(
        "cannot confine",
      );
      const data = { operation_id: "op", command: "touch ran", actor: "s", permission_mode: mode };
      expect((await host.call("3", "process/start", data)).detail).toMatchObject({
        kind: "unsupported",
      });
      expect(await readdir(root)).toEqual([]);
      await host.end();
    },
  );

  it("runs commands with the binding's variables and none of its own", async () => {
    const host = await start(
      { environment: { GIVEN: "value" } },
      { ...process.env, SECRET_OF_THE_ADAPTER: "x" },
    );
    const ran = await host.tool(
      "1",
      "bash",
      { command: "pwd; env; cat; echo no >&2; exit 3" },
      "unconfined",
    );
    expect(ran).toMatchObject({ exit_code: 3, stderr: "no\n", timed_out: false });
    expect(ran["stdout"]).toContain(`${root}\n`);
    expect(ran["stdout"]).toContain("GIVEN=value\n");
    expect(ran["stdout"]).not.toContain("SECRET_OF_THE_ADAPTER");
    const held = await host.tool("2", "bash", { command: "sleep 60 & echo $!" }, "unconfined");
    expect(held["exit_code"]).toBe(0); // although the grandchild holds the pipe
    process.kill(Number(held["stdout"]));
    await host.end();
  });

  it("kills a cancelled command with its group", async () => {
    const host = await start();
    const call = {
      name: "bash",
      arguments: JSON.stringify({ command: "sleep 60 & echo $! > pid; wait" }),
    };
    host.send({
      id: "1",
      method: "execute",
      data: { call, actor: "s", permission_mode: "unconfined" },
    });
    const pid = await vi.waitFor(async () => {
      const written = Number(await readFile(join(root, "pid"), "utf8"));
      expect(written).toBeGreaterThan(0);
      return written;
    }, 20_000);
    host.send({ id: "1", method: "cancel" });
    expect((await host.reply("1")).detail).toMatchObject({ kind: "cancelled" });
    await vi.waitFor(async () => expect(await alive(pid)).toBe(false), 20_000);
    await host.end();
  });

  it("says of a process that takes no input any more that it does not", async () => {
    const host = await start();
    const deaf = await begin(host, "1", "exec <&-; echo closed; sleep 300");
    const options = { MaxBytes: 100, OffsetBytes: 0, Wait: 20e9, MinDwell: 0 };
    expect((await read(host, "2", deaf.id, options)).Output).toBe("closed\n");
    expect(await host.call("3", "process/write", { id: deaf.id, input: "x" })).toMatchObject({
      error: expect.stringContaining("takes no input any more"),
      detail: { kind: "invalidParams" },
    });
    await host.end();
  });

  it("lets a command that takes too long go on in the background", async () => {
    const host = await start();
    const command = "echo early; read line < fifo; echo late";
    const began = performance.now();
    await host.tool("0", "bash", { command: "mkfifo fifo" }, "unconfined");
    const took = (performance.now() - began) / 1000;
    // On a busy machine it takes longer until a command has printed anything.
    const timeout = Math.ceil(1 + 20 * took);
    const ran = await host.tool("1", "bash", { command, timeout_seconds: timeout }, "unconfined");
    expect(ran).toMatchObject({ timed_out: true, stdout: "early\n" });
    const id = String(ran["promoted_process_id"]);
    await host.next(event("started", id));
    await host.tool("2", "bash", { command: "echo go > fifo" }, "unconfined");
    await host.next(event("stopped", id));
    await vi.waitFor(async () => {
      const output = (
        await read(host, String(Math.random()), id, {
          MaxBytes: 0,
          OffsetBytes: 0,
          Wait: 0,
          MinDwell: 0,
        })
      ).Output;
      expect(output).toBe("early\nlate\n");
    }, 20_000);
    await host.end();
  });

  it("runs real processes in groups of their own", async () => {
    const host = await start();
    const started = await begin(
      host,
      "1",
      "echo é; while read line; do echo got $line; done; exit 7",
    );
    expect(started).toMatchObject({
      operation_id: "op-1",
      status: "running",
      root_thread_id: "s",
      exit_code: -1,
    });
    expect(started.pgid).toBe(started.pid);
    await host.next(event("started", started.id));
    const options = { MaxBytes: 100, OffsetBytes: 0, Wait: 20e9, MinDwell: 0 };
    expect(await read(host, "2", started.id, options)).toMatchObject({
      Output: "é\n",
      StartOffset: 0,
      EndOffset: 3,
    });
    expect((await host.call("3", "process/write", { id: started.id, input: "this\n" })).error).toBe(
      "",
    );
    expect((await read(host, "4", started.id, { ...options, OffsetBytes: 3 })).Output).toBe(
      "got this\n",
    );
    const cut = await read(host, "5", started.id, { ...options, MaxBytes: 1 });
    expect(cut.EndOffset - cut.StartOffset).toBeLessThanOrEqual(2);
    expect(
      await read(host, "6", started.id, { ...options, OffsetBytes: 12, Wait: 1e6 }),
    ).toMatchObject({ Output: "", TimedOut: true });
    expect((await host.call("7", "process/list", {})).data).toMatchObject([
      { id: started.id, operation_id: "op-1" },
    ]);
    const stopped = (await host.call("8", "process/stop", { id: started.id })).data;
    expect(stopped).toMatchObject({ status: "stopped", terminal_cause: "requested_stop" });
    expect((await host.next(event("stopped", started.id))).data).toMatchObject({
      Cause: "requested_stop",
    });
    expect(await alive(started.pid)).toBe(false);
    const ended = await begin(host, "9", "exit 7");
    expect((await host.next(event("stopped", ended.id))).data).toMatchObject({
      Cause: "natural_exit",
      Process: { exit_code: 7, status: "stopped" },
    });
    for (const method of ["get", "read", "write", "stop"]) {
      const got = await host.call(`x-${method}`, `process/${method}`, {
        id: "../../etc/passwd",
        input: "",
      });
      expect(got.detail).toMatchObject({ kind: "processNotFound" });
    }
    const { data } = await host.call("10", "process/cleanup", {});
    expect((data as { Cleaned: Process[] }).Cleaned.map(({ id }) => id).sort()).toEqual(
      [started.id, ended.id].sort(),
    );
    await host.next(event("cleaned_up", ended.id));
    expect((await host.call("11", "process/list", {})).data).toEqual([]);
    expect(await readdir(join(directory, "state", "s", "processes"))).toEqual([]);
    await host.end();
  });

  it("stops and reaps what it has when it ends, the stubborn too", async () => {
    const host = await start();
    const one = await begin(host, "1", "sleep 300");
    const two = await begin(host, "2", "trap '' TERM; echo ready; sleep 300; sleep 300");
    await read(host, "3", two.id, { MaxBytes: 0, OffsetBytes: 0, Wait: 20e9, MinDwell: 0 });
    expect(await host.end()).toBeUndefined();
    expect(await alive(one.pid)).toBe(false);
    expect(await alive(two.pid)).toBe(false);
    const next = await start();
    const { data } = await next.call("1", "process/list", {});
    expect(
      (data as Process[]).map(({ status, terminal_cause }) => [status, terminal_cause]),
    ).toEqual([
      ["stopped", "requested_stop"],
      ["stopped", "requested_stop"],
    ]);
    await next.end();
  });

  it("recovers the records of one that was killed, and ends what that one left", async () => {
    const host = await start();
    const left = await begin(host, "1", "echo kept; sleep 300");
    await read(host, "2", left.id, { MaxBytes: 0, OffsetBytes: 0, Wait: 20e9, MinDwell: 0 });
    const gone = await begin(host, "3", "sleep 300");
    host.child.kill("SIGKILL");
    await host.done;
    expect(await alive(left.pid)).toBe(true);
    process.kill(gone.pid, "SIGKILL");
    const next = await start();
    await next.next(event("failed", left.id));
    const { data } = await next.call("1", "process/list", {});
    expect(data).toHaveLength(2);
    for (const record of data as Process[]) {
      expect(record).toMatchObject({ status: "failed", terminal_cause: "lost", exit_code: -1 });
    }
    expect((data as Process[]).map((r) => r.operation_id).sort()).toEqual(["op-1", "op-3"]);
    await vi.waitFor(async () => expect(await alive(left.pid)).toBe(false), 20_000);
    const kept = await read(next, "2", left.id, {
      MaxBytes: 0,
      OffsetBytes: 0,
      Wait: 0,
      MinDwell: 0,
    });
    expect(kept.Output).toBe("kept\n");
    expect(
      ((await next.call("3", "process/cleanup", {})).data as { Cleaned: unknown[] }).Cleaned,
    ).toHaveLength(2);
    await next.end();
    const last = await start();
    expect((await last.call("1", "process/list", {})).data).toEqual([]);
    await last.end();
  });

  it("presents immutable copies", async () => {
    const host = await start();
    const content = "x".repeat(300_000);
    await host.tool("1", "write_file", { path: "a", content });
    const got = (await host.tool("2", "present_artifact", { path: "a" }))["content"] as {
      text: string;
    }[];
    const { execution_export: name, size } = JSON.parse(got[0]?.text ?? "");
    expect(size).toBe(content.length);
    await host.tool("3", "write_file", { path: "a", content: "changed" });
    let whole = "";
    for (let eof = false; !eof; ) {
      const { data } = await host.call(`e${whole.length}`, "export/read", {
        token: name,
        offset: whole.length,
      });
      const piece = data as { data: string; eof: boolean };
      whole += Buffer.from(piece.data, "base64").toString();
      eof = piece.eof;
    }
    expect(whole).toBe(content);
    expect((await host.call("4", "export/close", { token: name })).data).toEqual({});
    expect((await host.call("5", "export/read", { token: name, offset: 0 })).detail).toMatchObject({
      kind: "artifactNotFound",
    });
    await host.tool("6", "present_artifact", { path: "a" });
    await host.end();
    expect(await readdir(join(directory, "state", "s", "exports"))).toEqual([]);
  });
});
