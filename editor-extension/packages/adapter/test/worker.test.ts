/** The kit's delegate before Caisson's own worker, by the audit example. */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Process, ProcessRead } from "../src/index.js";
import { alive } from "./alive.js";
import { type Got, Host } from "./host.js";

const caisson =
  process.env["CAISSON_TEST_PROGRAM"] ??
  fileURLToPath(new URL("../../../../bin/caisson", import.meta.url));
const audit = fileURLToPath(new URL("../examples/dist/audit/main.js", import.meta.url));

let directory: string;
let root: string;
let host: ReturnType<typeof Host.start>;

beforeAll(() => {
  if (!existsSync(caisson)) throw new Error(`${caisson} is not there: run make build first`);
});
beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "caisson-adapter-")));
  root = join(directory, "workspace");
  const worker = [
    caisson,
    "worker",
    `--state=${join(directory, "state")}`,
    "--permission-mode=unconfined",
    "--max-permission-mode=unconfined",
  ];
  // Twice, since adapters nest.
  const inner = [process.execPath, audit, "--log", join(directory, "inner.log"), "--", ...worker];
  host = Host.start([
    process.execPath,
    audit,
    "--log",
    join(directory, "outer.log"),
    "--",
    ...inner,
  ]);
  expect((await host.initialize(root, { environment: { GIVEN: "value" } })).error).toBe("");
});
afterEach(async () => {
  host.child.kill("SIGTERM");
  await host.done;
  await rm(directory, { recursive: true, force: true });
});

const bash = (command: string, more: object = {}) => ({
  call: { name: "bash", arguments: JSON.stringify({ command, ...more }) },
  actor: "s",
  permission_mode: "unconfined",
});
const event = (type: string) => (f: Got) =>
  f.method === "process" && (f.data as { Type?: string }).Type === type;

/** The bytes of a body that follows a reply. */
async function body(id: string, size: number): Promise<string> {
  const pieces = (): string =>
    host.frames
      .filter((f) => f.id === id && f.method === "body")
      .map((f) => f.raw)
      .join("");
  await host.next(() => pieces().length === size);
  return pieces();
}

describe("Caisson's worker behind two adapters", () => {
  it("announces what it can, and answers tools as ever", async () => {
    const { data } = host.frames[0] as Got;
    expect(data).toMatchObject({
      root,
      capabilities: expect.arrayContaining([
        "process.start.v1",
        "caisson.bulk.v1",
        "caisson.fs.v1",
        "caisson.shutdown.v1",
      ]),
    });
    expect((data as { capabilities: string[] }).capabilities).not.toContain("caisson.socket.v2");
    expect(await host.tool("1", "bash", { command: "echo $GIVEN" }, "unconfined")).toMatchObject({
      stdout: "value\n",
    });
    await host.tool("2", "write_file", { path: "f", content: "text\n" });
    expect(await host.tool("3", "grep", { pattern: "te.t" })).toMatchObject({ total: 1 });
    expect((await host.call("4", "tools/list", {})).error).toBe("");
    expect((await host.call("5", "nothing", {})).detail).toMatchObject({ kind: "unsupported" });
    expect(await host.end()).toBeUndefined();
  });

  it("is cancelled through them, and the command is gone", async () => {
    host.send({ id: "1", method: "execute", data: bash("echo $$ > pid; sleep 300") });
    const pid = await vi.waitFor(async () => {
      const written = Number(await readFile(join(root, "pid"), "utf8"));
      expect(written).toBeGreaterThan(0);
      return written;
    }, 20_000);
    host.send({ id: "1", method: "cancel" });
    expect((await host.reply("1")).detail).toMatchObject({ kind: "cancelled" });
    expect(await alive(pid)).toBe(false);
    expect(await host.tool("2", "bash", { command: "true" }, "unconfined")).toMatchObject({
      exit_code: 0,
    });
  });

  it("runs processes, whose events and bytes pass", async () => {
    const data = {
      operation_id: "op",
      command: "read line; printf '\\001got %s' \"$line\"",
      actor: "s",
      permission_mode: "unconfined",
    };
    const started = (await host.call("1", "process/start", data)).data as Process;
    expect(started).toMatchObject({ operation_id: "op", status: "running" });
    await host.next(event("started"));
    host.send({ id: "2", method: "process/write", data: { id: started.id }, body: 3 });
    host.send({ id: "2", method: "body", raw: 3 }, Buffer.from("in\n"));
    expect((await host.reply("2")).error).toBe("");
    const options = { MaxBytes: 100, OffsetBytes: 0, Wait: 20e9, MinDwell: 0, Encoding: "base64" };
    const read = await host.call("3", "process/read", { id: started.id, options });
    expect(await body("3", read.body)).toBe("\u0001got in");
    expect((read.data as ProcessRead).EndOffset).toBe(7);
    expect((await host.next(event("stopped"))).data).toMatchObject({
      Cause: "natural_exit",
      Process: { exit_code: 0 },
    });
    expect((await host.call("4", "process/list", {})).data).toMatchObject([{ operation_id: "op" }]);
  });

  it("takes and gives files and exports of any size", async () => {
    const size = 9 << 20;
    await host.tool(
      "1",
      "bash",
      { command: `head -c ${size} /dev/zero | tr '\\0' z > big` },
      "unconfined",
    );
    const { call, ...rest } = bash("");
    const presented = await host.call("2", "execute", {
      ...rest,
      call: { ...call, name: "present_artifact", arguments: '{"path":"big"}' },
    });
    const { content } = presented.data as { content: { text: string }[] };
    const name = JSON.parse(content[0]?.text ?? "").execution_export;
    const chunk = await host.call("3", "export/read", { token: name, offset: 0 });
    expect(chunk.data).toMatchObject({ eof: false });
    const stream = await host.call("4", "export/stream", { token: name });
    expect(stream.body).toBe(size);
    let got = 0;
    for (let taken = 0; got < size; ) {
      await host.next(() => {
        got = host.frames
          .filter((f) => f.id === "4" && f.method === "body")
          .reduce((n, f) => n + f.raw.length, 0);
        return got > taken;
      });
      taken = got;
      host.send({ id: "4", method: "body_taken", body: taken });
    }
    expect((await host.call("5", "export/close", { token: name })).error).toBe("");
    host.send({ id: "6", method: "fs/write_file", data: { path: "small" }, body: 4 });
    host.send({ id: "6", method: "body", raw: 4 }, Buffer.from("a\0\nb"));
    expect((await host.reply("6")).error).toBe("");
    const back = await host.call("7", "fs/read_file", { path: "small", offset: 0, length: -1 });
    expect(await body("7", back.body)).toBe("a\0\nb");
  });

  it("ends with everything when the input does", async () => {
    const start = {
      operation_id: "op",
      command: "trap '' TERM; echo $$ > pid; sleep 300",
      actor: "s",
      permission_mode: "unconfined",
    };
    const { pid } = (await host.call("1", "process/start", start)).data as Process;
    host.send({ id: "2", method: "execute", data: bash("sleep 300") });
    expect(await alive(pid)).toBe(true);
    expect(await host.end()).toBeUndefined();
    expect(await alive(pid)).toBe(false);
  });

  it("ends by shutdown, in order", async () => {
    expect((await host.call("1", "shutdown", { remove: true })).error).toBe("");
    expect(await host.done).toBeUndefined();
  });

  it("that is killed has the adapters end, without a word about what was in flight", async () => {
    const { stdout } = await host.tool("0", "bash", { command: "echo $PPID" }, "unconfined");
    host.send({ id: "1", method: "execute", data: bash("touch begun; sleep 300") });
    await vi.waitFor(() => readFile(join(root, "begun")), 20_000);
    process.kill(Number(stdout), "SIGKILL");
    expect((await host.done)?.message).toContain("ended by SIGKILL");
    expect(host.frames.some(({ id }) => id === "1")).toBe(false);
  });
});
