/**
 * An adapter that serves files and processes of this machine.
 *
 *     node files/main.js --state DIRECTORY
 *
 * It cannot confine commands, so it runs them in the mode `unconfined` only and
 * refuses them in `standard` and `read_only`. Records of processes and their
 * output are kept in the state directory, which it makes: an adapter that follows
 * one that was killed finds them, and ends what that one had left running.
 */
import { mkdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import {
  AdapterError,
  type Context,
  type Execute,
  type Initialize,
  run,
  type ToolResult,
} from "@caisson/adapter";
import { Arguments, fileTool, relative, structured } from "../shared/tools.js";
import { mustBeUnconfined, type Overdue, runCommand } from "./command.js";
import { Disk } from "./disk.js";
import { Exports } from "./exports.js";
import { isOver, Registry, shell } from "./registry.js";

const { values: flags } = parseArgs({ options: { state: { type: "string" } } });
if (flags.state === undefined) {
  console.error("usage: files --state DIRECTORY");
  process.exit(2);
}
const stateDirectory = resolve(flags.state);

/** What the one session of an adapter has. */
interface Session {
  readonly binding: Initialize;
  readonly root: string;
  readonly disk: Disk;
  readonly environment: Readonly<Record<string, string>>;
  readonly registry: Registry;
  readonly exports: Exports;
}

let session: Session | undefined;

/** The session, which initialize has made before anything else is called. */
function bound(): Session {
  if (session === undefined) throw new Error("nothing is bound");
  return session;
}

async function initialize(binding: Initialize, context: Context): Promise<Session> {
  const root = await Disk.open(binding.root, binding.require_existing_workspace === true);
  const state = join(stateDirectory, binding.session);
  await mkdir(state, { recursive: true, mode: 0o700 });
  // None of the adapter's own variables: they may hold secrets of the user's.
  const environment = {
    PATH: "/usr/local/bin:/usr/bin:/bin",
    HOME: root,
    LANG: "C.UTF-8",
    ...binding.environment,
  };
  const registry = await Registry.open({
    directory: join(state, "processes"),
    id: binding.session,
    environment,
    emit: (event) => context.emitProcess(event),
  });
  const exports = new Exports(join(state, "exports"));
  return { binding, root, disk: new Disk(root), environment, registry, exports };
}

async function execute(data: Execute, context: Context): Promise<ToolResult> {
  const { root, disk, exports } = bound();
  const { call } = data;
  const result = await fileTool(disk, root, data);
  if (result !== undefined) return result;
  switch (call.name) {
    case "bash":
    case "git":
      return command(data, context);
    case "process":
      return processTool(data, context);
    case "present_artifact":
      return exports.present(await disk.resolve(relative(root, new Arguments(call).text("path"))));
    default:
      throw new AdapterError("unsupported", `this adapter has no tool ${call.name}`);
  }
}

async function command(
  { call, actor, permission_mode }: Execute,
  context: Context,
): Promise<ToolResult> {
  mustBeUnconfined(permission_mode);
  const { environment: env, registry } = bound();
  const args = new Arguments(call);
  const git = call.name === "git";
  const cwd = await directory(git ? "" : args.text("cwd", ""));
  const line = git ? `git ${args.text("subcommand")}` : args.text("command");
  if (!git && args.flag("run_in_background")) {
    const { id } = await registry.start({ command: line, actor }, cwd, context);
    return structured({ command: line, exit_code: -1, promoted_process_id: id });
  }
  const argv = git ? ["git", args.text("subcommand"), ...args.texts("args")] : [shell, "-c", line];
  const seconds = git ? 300 : Math.max(1, Math.min(args.count("timeout_seconds", 300), 3600));
  const adopt = async (overdue: Overdue): Promise<string> => {
    const { id } = await registry.adopt(overdue, { command: line, actor }, cwd, context);
    return id;
  };
  const options = { argv, shown: line, cwd, env, timeout: seconds * 1000, adopt };
  return structured(await runCommand(options, context.signal));
}

/** Where a command runs. */
async function directory(path: string): Promise<string> {
  const { root, disk } = bound();
  return disk.resolve(relative(root, path));
}

async function processTool({ call }: Execute, context: Context): Promise<ToolResult> {
  const { registry } = bound();
  const args = new Arguments(call);
  const action = args.text("action");
  if (action === "list") return structured({ processes: registry.list() });
  const id = args.text("process_id");
  switch (action) {
    case "write":
      return structured({ process: await registry.write(id, args.text("input")) });
    case "stop":
      return structured({ process: await registry.stop(id) });
    case "read": {
      const options = {
        MaxBytes: args.count("max_bytes", 0),
        OffsetBytes: args.count("offset_bytes", undefined) ?? null,
        Wait: args.count("wait_ms", 0) * 1e6,
        MinDwell: 0,
      };
      const read = await registry.read(id, options, context.signal);
      return structured({
        process: read.Process,
        output: read.Output,
        start_offset: read.StartOffset,
        end_offset: read.EndOffset,
        total_bytes: read.TotalBytes,
        truncated: read.Truncated,
        timed_out: read.TimedOut,
        eof: read.EndOffset === read.TotalBytes && isOver(read.Process),
      });
    }
    default:
      throw new AdapterError("unsupported", `process: there is no action ${action} here`);
  }
}

await run({
  initialize: async (binding, context) => {
    session = await initialize(binding, context);
    return { root: session.root, capabilities: ["process.start.v1"] };
  },
  methods: {
    execute,
    "process/start": async (start, context) => {
      mustBeUnconfined(start.permission_mode);
      if (((start.command ?? "") !== "") === (start.argv ?? []).length > 0) {
        throw new AdapterError("invalidParams", "a process is either a command or an argv");
      }
      return bound().registry.start(start, await directory(start.cwd ?? ""), context);
    },
    "process/list": () => bound().registry.list(),
    "process/get": ({ id }) => bound().registry.get(id ?? ""),
    "process/read": ({ id, options }, context) =>
      bound().registry.read(
        id ?? "",
        options ?? { MaxBytes: 0, Wait: 0, MinDwell: 0 },
        context.signal,
      ),
    "process/write": ({ id, input }) => bound().registry.write(id ?? "", input ?? ""),
    "process/stop": ({ id }) => bound().registry.stop(id ?? ""),
    "process/cleanup": async () => ({ Cleaned: await bound().registry.cleanup() }),
    "export/read": ({ token, offset }) => bound().exports.read(token, offset),
    "export/close": ({ token }) => bound().exports.close(token),
  },
  close: async () => {
    if (session === undefined) return;
    await session.registry.close(); // when it fails, nothing is removed
    await session.exports.closeAll();
    if (session.binding.remove_workspace_on_exit === true)
      await rm(session.root, { recursive: true, force: true });
  },
});
