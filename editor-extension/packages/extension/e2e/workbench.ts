import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Session } from "@caisson/protocol";
import { type BrowserContext, chromium, type Page } from "playwright-core";
import { launch } from "../src/service/child.js";
import { Connection } from "../src/service/connection.js";
import { until } from "./until.js";

const run = promisify(execFile);

/** What a workbench is started with; paths are absolute. */
export interface Installation {
  /** code-server's entry.js. */
  server: string;
  /** The packaged extensions. */
  extensions: string[];
}

/** A real editor with an empty profile, a folder opened in it, in a headless browser. */
export class Workbench {
  readonly folder: string;
  /** Another folder, which only the window of the workspace file shows. */
  readonly library: string;
  readonly configuration: string;
  page!: Page;
  private server: ChildProcess | undefined;
  private browser: BrowserContext | undefined;
  private address = "";
  /** The services of other windows. */
  private readonly others: Connection[] = [];
  /** How many windows there were: each one's agent listens on a socket of its own. */
  private windows = 0;

  private constructor(private readonly directory: string) {
    this.folder = join(directory, "project");
    this.library = join(directory, "library");
    this.configuration = join(directory, "config", "caisson", "config.json");
  }

  /** Installs the extensions and opens the window. */
  static async start(installation: Installation): Promise<Workbench> {
    const workbench = new Workbench(await mkdtemp(join(tmpdir(), "caisson-e2e-")));
    try {
      await workbench.install(installation);
      await workbench.serve(installation);
      await workbench.open();
    } catch (thrown) {
      await workbench.stop();
      throw thrown;
    }
    return workbench;
  }

  private get sockets(): string {
    return join(this.directory, "agents");
  }

  /** Where the agent of the window that is open listens, or will. */
  get socket(): string {
    return join(this.sockets, String(this.windows));
  }

  /** The state, data and configuration directories of this workbench alone. */
  private get environment(): NodeJS.ProcessEnv {
    return {
      ...process.env,
      XDG_CONFIG_HOME: join(this.directory, "config"),
      XDG_STATE_HOME: join(this.directory, "state"),
      XDG_DATA_HOME: join(this.directory, "data"),
      XDG_RUNTIME_DIR: join(this.directory, "run"),
      CAISSON_E2E_SOCKETS: this.sockets,
      // No registry is asked.
      EXTENSIONS_GALLERY: '{"serviceUrl":"","itemUrl":"","resourceUrlTemplate":""}',
    };
  }

  private get places(): string[] {
    return [
      ["--config", join(this.directory, "config.yaml")],
      ["--user-data-dir", join(this.directory, "user")],
      ["--extensions-dir", join(this.directory, "extensions")],
    ].flat();
  }

  private async install({ server, extensions }: Installation): Promise<void> {
    const settings = join(this.directory, "user", "User");
    await mkdir(settings, { recursive: true });
    await mkdir(this.folder);
    await mkdir(this.library);
    await mkdir(this.sockets);
    await writeFile(join(this.folder, "a.txt"), "");
    await writeFile(join(this.library, "b.txt"), "");
    await mkdir(join(this.directory, "run"), { mode: 0o700 });
    await mkdir(join(this.directory, "config"));
    await writeFile(join(this.directory, "config.yaml"), "");
    await writeFile(join(settings, "settings.json"), JSON.stringify(editorSettings, null, 2));
    for (const extension of extensions) {
      await run(process.execPath, [server, ...this.places, "--install-extension", extension], {
        env: this.environment,
      });
    }
  }

  private async serve({ server }: Installation): Promise<void> {
    const port = await freePort();
    this.address = `http://127.0.0.1:${port}`;
    const log = createWriteStream(join(this.directory, "server.log"));
    this.server = spawn(
      process.execPath,
      [
        server,
        ...this.places,
        "--bind-addr",
        `127.0.0.1:${port}`,
        "--auth",
        "none",
        "--disable-telemetry",
        "--disable-update-check",
        "--disable-getting-started-override",
        "--disable-file-downloads",
        "--disable-proxy",
      ],
      { env: this.environment, stdio: ["ignore", "pipe", "pipe"] },
    );
    this.server.stdout?.pipe(log);
    this.server.stderr?.pipe(log);
    await until("the server answers", async () => {
      const answer = await fetch(`${this.address}/healthz`).catch(() => undefined);
      return answer?.ok ? true : undefined;
    });
  }

  private async open(): Promise<void> {
    this.browser = await chromium.launchPersistentContext(join(this.directory, "browser"), {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      headless: true,
      viewport: { width: 1280, height: 800 },
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    });
    this.browser.setDefaultTimeout(90_000);
    this.page = this.browser.pages()[0] ?? (await this.browser.newPage());
    await this.enter();
  }

  /** Opens folders of the directory in one window, by a workspace file. */
  async openWorkspace(...names: string[]): Promise<void> {
    await this.leave();
    const file = join(this.directory, "two.code-workspace");
    await writeFile(file, JSON.stringify({ folders: names.map((path) => ({ path })) }));
    await this.show(`/?workspace=${encodeURIComponent(file)}`);
  }

  /** Leaves the window, whose service ends. */
  async leave(): Promise<void> {
    await this.page.goto("about:blank");
    await until("the service has ended with its window", async () =>
      (await this.services()).length === 0 ? true : undefined,
    );
  }

  /** Opens the window of the project again. */
  async enter(): Promise<void> {
    await this.show(`/?folder=${encodeURIComponent(this.folder)}`);
  }

  /** Reloads the window, as a person would. */
  async reload(): Promise<void> {
    await this.nextWindow();
    await this.page.reload();
    await this.page.locator(".monaco-workbench").waitFor();
  }

  private async show(path: string): Promise<void> {
    await this.nextWindow();
    await this.page.goto(this.address + path);
    await this.page.locator(".monaco-workbench").waitFor();
  }

  private async nextWindow(): Promise<void> {
    this.windows++;
    await writeFile(join(this.sockets, "window"), String(this.windows));
  }

  /** The services that run for this workbench, by process id. */
  async services(): Promise<number[]> {
    const found: number[] = [];
    for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
      const [program, line, environment] = await Promise.all([
        readlink(`/proc/${pid}/exe`).catch(() => ""),
        readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => ""),
        readFile(`/proc/${pid}/environ`, "utf8").catch(() => ""),
      ]);
      const ours = environment.includes(`CAISSON_E2E_SOCKETS=${this.sockets}\0`);
      if (program.endsWith("/caisson") && line.split("\0")[1] === "serve" && ours) {
        found.push(Number(pid));
      }
    }
    return found;
  }

  /** A program that greets as a service of another time. */
  async otherProgram(): Promise<string> {
    const path = join(this.directory, "other");
    const answer = { protocolVersion: 99, serverInfo: { name: "caisson", version: "0.0.1" } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 0, result: answer });
    const message = `Content-Length: ${body.length}\r\n\r\n${body}`;
    // It hears nothing after its greeting, not even that it shall end.
    const program = `#!${process.execPath}
process.stdin.once("data", () => process.stdout.write(${JSON.stringify(message)}));
setInterval(() => undefined, 60_000);
`;
    await writeFile(path, program, { mode: 0o755 });
    return path;
  }

  /** A service of another window, which works with the same sessions. */
  async another(): Promise<Connection> {
    const program = await this.program();
    const places = {
      "--state-dir": join(this.directory, "state", "caisson"),
      "--data-dir": join(this.directory, "data", "caisson"),
      "--config": this.configuration,
    };
    const other = await Connection.start(
      launch(program, ["serve", ...Object.entries(places).flat()]),
      { processId: process.pid, clientInfo: { name: "another window", version: "1" } },
      () => undefined,
    );
    this.others.push(other);
    return other;
  }

  /** Lets another service than the window's have the session; what it gives ends that one. */
  async hold(session: Session): Promise<() => Promise<unknown>> {
    const other = await this.another();
    const { id: sessionId, workspace } = session;
    await other.request("session/open", { sessionId, workspace, connect: false });
    return () => other.stop();
  }

  /** The program that came with the extension. */
  private async program(): Promise<string> {
    const extensions = join(this.directory, "extensions");
    const own = (await readdir(extensions)).find((n) => n.startsWith("caisson-dev.caisson-"));
    if (own === undefined) {
      throw new Error("the extension is not installed");
    }
    return join(extensions, own, "bin", "caisson");
  }

  /** Removes every session, and the environments that outlive their windows. */
  private async removeSessions(): Promise<void> {
    const program = await this.program().catch(() => undefined);
    if (program === undefined) {
      return; // nothing was installed
    }
    const options = { env: this.environment };
    const { stdout } = await run(program, ["session", "list", "--json"], options);
    const { sessions } = JSON.parse(stdout) as { sessions: { id: string }[] };
    for (const { id } of sessions) {
      await run(program, ["session", "delete", "--force", id], options);
    }
  }

  /** Ends everything that was started, and removes the directory. */
  async stop(): Promise<void> {
    try {
      await this.browser?.close();
    } finally {
      await this.end();
    }
  }

  private async end(): Promise<void> {
    await Promise.all(this.others.map((other) => other.stop()));
    const { server } = this;
    if (server !== undefined && server.exitCode === null && server.signalCode === null) {
      const gone = new Promise((resolve) => server.once("exit", resolve));
      server.kill();
      await gone;
    }
    await until("the service has ended with its window", async () =>
      (await this.services()).length === 0 ? true : undefined,
    );
    await this.removeSessions();
    await rm(this.directory, { recursive: true, force: true, maxRetries: 10 });
  }
}

const editorSettings = {
  "chat.disableAIFeatures": true,
  // Nothing is trusted at first, and nobody asks.
  "security.workspace.trust.startupPrompt": "never",
  "workbench.startupEditor": "none",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.reduceMotion": "on",
  "workbench.colorTheme": "Default Dark Modern",
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "window.dialogStyle": "custom",
  "remote.autoForwardPorts": false,
  // Text in the page, and not in a picture of it.
  "terminal.integrated.gpuAcceleration": "off",
};

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") {
    throw new Error("there is no free port");
  }
  return address.port;
}
