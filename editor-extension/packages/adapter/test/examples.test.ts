import { mkdtemp, readFile, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Host, token } from "./host.js";

const program = (name: string): string =>
  fileURLToPath(new URL(`../examples/dist/${name}/main.js`, import.meta.url));

let directory: string;
let root: string;
beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "caisson-adapter-")));
  root = join(directory, "workspace");
});
afterEach(() => rm(directory, { recursive: true, force: true }));

describe.each(["overlay", "files"])("the files of %s", (name) => {
  const start = async (): Promise<Host> => {
    const state = name === "files" ? ["--state", join(directory, "state")] : [];
    const host = Host.start([process.execPath, program(name), ...state]);
    expect((await host.initialize(root)).error).toBe("");
    return host;
  };

  it("are written, read, edited and listed", async () => {
    const host = await start();
    const hello = "hello\nwörld\r\nend";
    const wrote = await host.tool("1", "write_file", { path: "a/b.txt", content: hello });
    expect(wrote).toMatchObject({ path: "a/b.txt", written_bytes: 17 });
    expect(wrote["diff"]).toContain("+hello\n+wörld\r\n+end\n\\ No newline");
    expect(await host.tool("2", "read_file", { path: join(root, "a/./b.txt") })).toMatchObject({
      content: hello,
      start_line: 1,
      num_lines: 3,
      total_lines: 3,
      truncated: false,
      content_sha256: wrote["new_file_sha"],
    });
    expect(
      await host.tool("3", "read_file", { path: "a/b.txt", offset: 2, limit: 1 }),
    ).toMatchObject({
      content: "wörld\r\n",
      start_line: 2,
      num_lines: 1,
      truncated: true,
    });
    const edited = await host.tool("4", "edit_file", {
      path: "a/b.txt",
      old_text: "wörld",
      new_text: "world",
    });
    expect(edited).toMatchObject({ old_file_sha: wrote["new_file_sha"], written_bytes: 16 });
    expect(edited["diff"]).toBe(
      "--- a/a/b.txt\n+++ b/a/b.txt\n@@ -2,1 +2,1 @@\n-wörld\r\n+world\r\n",
    );
    const bytes = Buffer.from([0xff, 0x00, 0x0a]).toString("base64");
    await host.tool("5", "write_file", { path: "raw", content: bytes, encoding: "base64" });
    expect(
      await host.tool("6", "read_file", { path: "raw", encoding: "base64", byte_offset: 1 }),
    ).toMatchObject({
      content: Buffer.from([0x00, 0x0a]).toString("base64"),
      num_bytes: 2,
      size: 3,
    });
    expect(await host.tool("7", "list_files", {})).toMatchObject({
      entries: [
        { name: "a", path: "a", is_dir: true },
        { name: "raw", path: "raw", is_dir: false, size: 3, mode: "0644" },
      ],
      total: 2,
      has_more: false,
    });
    expect(await host.end()).toBeUndefined();
  });

  it("are refused outside of the root, and where the call makes no sense", async () => {
    const host = await start();
    await host.tool("1", "write_file", { path: "f", content: "x x" });
    const refusals: [string, object, RegExp][] = [
      ["read_file", { path: "../f" }, /outside/],
      ["read_file", { path: "/etc/passwd" }, /outside/],
      ["read_file", { path: `${root}x` }, /outside/],
      ["write_file", { path: "a/../../f", content: "" }, /outside/],
      ["read_file", { path: "missing" }, /does not exist/],
      ["read_file", { path: "." }, /directory|regular/],
      ["write_file", { path: "f", content: "y", create_only: true }, /exists already/],
      ["write_file", { path: "f/g", content: "y" }, /no directory|ENOTDIR/],
      ["write_file", { path: "", content: "y" }, /directory|regular/],
      ["edit_file", { path: "f", old_text: "x", new_text: "y" }, /2 times/],
      ["edit_file", { path: "f", old_text: "z", new_text: "y" }, /not in the file/],
      ["read_file", { path: 1 }, /a string/],
      ["read_file", { path: "f", offset: -1 }, /whole number/],
      ["list_files", { path: "f" }, /directory|ENOTDIR/],
      ["frobnicate", {}, /no tool/],
    ];
    for (const [i, [tool, args, words]] of refusals.entries()) {
      await expect(
        host.tool(`r${i}`, tool, args),
        `${tool} ${JSON.stringify(args)}`,
      ).rejects.toThrow(words);
    }
    expect(await host.tool("2", "read_file", { path: "f" })).toMatchObject({ content: "x x" });
    expect(await host.end()).toBeUndefined();
  });
});

describe("overlay", () => {
  it("leaves out processes and commands, and touches no disk", async () => {
    const host = Host.start([process.execPath, program("overlay")]);
    const { data } = await host.initialize(root);
    expect(data).toEqual({ version: 4, root, capabilities: ["caisson.errors.v1"] });
    for (const method of ["process/start", "process/list", "export/read", "run_code"]) {
      const got = await host.call(method, method, {
        operation_id: "op",
        command: "true",
        actor: "s",
      });
      expect(got.detail).toMatchObject({ kind: "unsupported" });
    }
    await expect(host.tool("1", "bash", { command: "true" }, "unconfined")).rejects.toThrow(
      "no tool bash",
    );
    await host.tool("2", "write_file", { path: "f", content: "x" });
    expect(await host.end()).toBeUndefined();
    await expect(stat(root)).rejects.toThrow("ENOENT");
  });

  it("says that its files are lost where they must be there", async () => {
    const host = Host.start([process.execPath, program("overlay")]);
    const got = await host.initialize(root, { require_existing_workspace: true });
    expect(got.detail).toMatchObject({ kind: "environmentLost" });
    await host.end();
  });

  it("ends although the host reads nothing", async () => {
    const host = Host.start([process.execPath, program("overlay")]);
    await host.initialize(root);
    await host.tool("1", "write_file", { path: "f", content: "x".repeat(1e6) });
    host.child.stdout?.pause();
    const call = { name: "read_file", arguments: '{"path":"f"}' };
    for (let i = 0; i < 20; i++)
      host.send({ id: `r${i}`, method: "execute", data: { call, actor: "s" } });
    host.input.end();
    const code = await new Promise((resolve) => host.child.once("exit", resolve));
    expect(code).toBe(1);
  });

  it("ends in order when it is told to by a signal", async () => {
    const host = Host.start([process.execPath, program("overlay")]);
    await host.initialize(root);
    host.child.kill("SIGTERM");
    expect(await host.done).toBeUndefined();
  });
});

describe("audit", () => {
  it("logs what passes and by whom, and neither contents nor variables", async () => {
    const log = join(directory, "log");
    const peer = [process.execPath, program("overlay")];
    const host = Host.start([process.execPath, program("audit"), "--log", log, "--", ...peer]);
    await host.initialize(root, { environment: { SECRET: "hidden-variable" } });
    await host.tool("1", "write_file", { path: "f", content: "hidden-content" });
    await expect(host.tool("2", "bash", { command: "echo hi" }, "unconfined")).rejects.toThrow(
      "no tool",
    );
    expect(await host.end()).toBeUndefined();
    expect((await stat(log)).mode & 0o777).toBe(0o600);
    const text = await readFile(log, "utf8");
    const entries = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(entries.map(({ event, method }) => `${event} ${method}`)).toEqual([
      "begin initialize",
      "end initialize",
      "begin execute",
      "end execute",
      "begin execute",
      "end execute",
    ]);
    expect(entries[0]).toMatchObject({ session: "s", root });
    expect(entries[2]).toMatchObject({ session: "s", tool: "write_file", actor: "s" });
    expect(entries[5]).toMatchObject({
      tool: "bash",
      mode: "unconfined",
      command: "echo hi",
      error: expect.stringContaining("no tool"),
    });
    for (const secret of ["hidden", token, "SECRET"]) expect(text).not.toContain(secret);
  });

  it("does nothing that it cannot log", async () => {
    const host = Host.start([
      process.execPath,
      program("audit"),
      "--log",
      "/dev/full",
      "--",
      process.execPath,
      program("overlay"),
    ]);
    expect((await host.initialize(root)).detail).toMatchObject({ kind: "denied" });
    await host.end();
  });

  it.each([["files"], ["audit"]])("%s says how it is used", async (name) => {
    const host = Host.start([process.execPath, program(name)]);
    expect((await host.done)?.message).toMatch(/exit 2: usage: /);
  });
});
