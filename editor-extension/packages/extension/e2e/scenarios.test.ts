import { mkdir, rename, writeFile } from "node:fs/promises";
import { availableParallelism, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Session } from "@caisson/protocol";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Agent, AgentError } from "./agent.js";
import { image, makeImage } from "./image.js";
import { until } from "./until.js";
import { Window } from "./window.js";
import { Workbench } from "./workbench.js";

/** Where pictures of the main views go. */
const pictures = process.env["CAISSON_E2E_PICTURES"];

/** The workbench of the tests has no terminals of its own, and says so after a while. */
const ownTrouble = '.statusbar-item[id$="ptyHostStatus"] { display: none !important; }';

/** A picture of one red dot. */
const dot =
  "iVBORw0KGgoAAAANSUhEUgAAADAAAAAwCAIAAADYYG7QAAAAhklEQVR42u3Yyw2AMAwE0S0p/Z/oDO58ghURZ43GcgHvaI92sxEgQGtAW2uRzQAFKcMsTaUMsJSjiZuUQ4mzlKx5NSlf0zfVAU3VdExapXkyVQClaW5N9qBkzdUECBAgQIAA/Q3E+dE4YT8B2X0dPIpFf3vH+uHYh0wLmmNjNK2whHNApzkAJ8jWNywy/vkAAAAASUVORK5CYII=";

let workbench: Workbench;
let window: Window;
let agent: Agent;
let session: Session;

/** How long a start of the extension may take that has a processor to itself, in ms. */
const activationBudget = 100;

/** How long the doctor's report may take, in ms: longer than the doctor itself may. */
const doctorBudget = 150_000;

/** How long a window may take for its folders, in ms: as long as the extension waits for them. */
const foldersBudget = 30_000;

/** How long each start of the extension took, as the editor says. */
const activations: { ms: number; budget: number }[] = [];

beforeAll(async () => {
  const server = required("CAISSON_E2E_SERVER");
  const extension = required("CAISSON_E2E_EXTENSION");
  const agentExtension = required("CAISSON_E2E_AGENT");
  await makeImage();
  workbench = await Workbench.start({ server, extensions: [extension, agentExtension] });
  window = new Window(workbench.page);
});

afterEach(async ({ task }) => {
  if (task.result?.state === "fail") {
    await picture(`failed-${task.name.replace(/\W+/g, "-")}`);
  }
});

afterAll(async () => {
  agent?.close();
  await workbench?.stop();
});

function required(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") {
    throw new Error(`${name} is not set: testdata/rig/e2e starts these tests`);
  }
  return value;
}

async function picture(name: string): Promise<void> {
  if (pictures !== undefined) {
    await mkdir(pictures, { recursive: true });
    await workbench.page.screenshot({ path: join(pictures, `${name}.png`), style: ownTrouble });
  }
}

describe("in a real workbench", () => {
  it("starts nothing in a workspace that nobody trusts", async () => {
    await window.status.filter({ hasText: "Caisson" }).waitFor();
    await window.says("off in an untrusted workspace");
    activations.push(await activation());
    await window.showCaisson();
    await window.section("Sessions").filter({ hasText: "starts nothing" }).waitFor();
    await picture("untrusted");
    expect(await workbench.services()).toEqual([]);
  });

  it("starts without a configuration, on this machine", async () => {
    await window.section("Sessions").locator("a", { hasText: "Manage Workspace Trust" }).click();
    await window.trust();
    await window.status.filter({ hasText: "local" }).waitFor();
    await window.row("Sessions", /project.*local.*not started.*here/).waitFor();
    agent = await Agent.connect(workbench.socket);
    await picture("first-start");
  });

  it("begins a configuration where there is none", async () => {
    await window.command("Caisson: Open Configuration");
    await window.tab("config.json").waitFor();
    await window.editor.filter({ hasText: "execution_environments" }).waitFor();
    await window.closeEditor("config.json");
  });

  it("opens a container, chosen by its profile", async () => {
    await configure({});
    await window.command("Caisson: Choose Environment");
    await window.choose("isolated", "isolated");
    await window.notification("new session on isolated; the one on local stays").waitFor();
    await window.status.filter({ hasText: "isolated" }).waitFor();
    await window.row("Sessions", /isolated.*ready.*here/).waitFor();
    await picture("container");
    await window.clearNotifications();
  });

  it("lets an extension call tools there", async () => {
    session = await agent.open();
    expect(session).toMatchObject({ profile: "isolated", backend: "docker", state: "ready" });
    await agent.call(session, "write_file", { path: "greeting.txt", content: "hello there\n" });
    const { structuredContent } = await agent.call(session, "bash", {
      command: "cat greeting.txt",
    });
    expect(structuredContent).toMatchObject({ exit_code: 0, stdout: "hello there\n" });
  });

  it("shows a process, lets a person type to it, and stops it", async () => {
    const script = 'echo ready; while read -r line; do echo "heard $line"; done';
    await agent.start(session, script, { label: "listener", tty: { cols: 80, rows: 24 } });
    const row = window.row("Processes", "listener");
    await row.filter({ hasText: "running" }).waitFor();
    await row.click();
    await window.terminal.filter({ hasText: "ready" }).waitFor();
    await window.typeInTerminal("a whisper");
    await window.terminal.filter({ hasText: "heard a whisper" }).waitFor();
    await picture("process");
    await window.clickOnRow(row, "Stop Process");
    await row.filter({ hasText: "stopped" }).waitFor();
    await until("the extension was told of its beginning and its end", async () => {
      const { processes } = await agent.seen();
      const told = processes.filter((e) => e.process.label === "listener").map((e) => e.type);
      return (told.includes("started") && told.includes("exited")) || undefined;
    });
  });

  it("shows what was published", async () => {
    await agent.call(session, "write_file", { path: "dot.png", content: dot, encoding: "base64" });
    await agent.call(session, "write_file", {
      path: "report.md",
      content: "# Findings\n\nAll well.\n",
    });
    await agent.call(session, "present_artifact", { path: "dot.png" });
    await agent.call(session, "present_artifact", { path: "report.md" });
    // All rows are there: none moves away from under the pointer.
    await window.row("Artifacts", "report.md").waitFor();
    await window.row("Artifacts", "dot.png").click();
    await window.tab("dot.png").waitFor();
    await window.webview.locator("img.main-image, .image img, img").first().waitFor();
    await picture("image");
    await window.row("Artifacts", "report.md").click();
    await window.tab(/Preview report\.md/).waitFor();
    await window.webview.locator("h1", { hasText: "Findings" }).waitFor();
    await picture("artifacts");
    await window.theme("Light Modern");
    await picture("artifacts-light");
    await window.theme("Dark Modern");
  });

  it("compares two versions, and shows what is no text as bytes", async () => {
    await agent.call(session, "write_file", {
      path: "report.md",
      content: "# Findings\n\nAll ill.\n",
    });
    await agent.call(session, "present_artifact", { path: "report.md" });
    await agent.call(session, "write_file", {
      path: "blob.bin",
      content: "AAEC/w==",
      encoding: "base64",
    });
    await agent.call(session, "present_artifact", { path: "blob.bin" });
    await window.row("Artifacts", "blob.bin").waitFor();
    await window.row("Artifacts", "blob.bin").click();
    await window.editor.filter({ hasText: /00000000\s+00\s01\s02\sff/ }).waitFor();
    const report = window.row("Artifacts", "report.md").first();
    await window.takeFromMenu(report, "Compare Artifacts", window.quickInput);
    await window.choose("report.md", "report.md");
    await window.tab("report.md (versions)").waitFor();
    await workbench.page.locator(".monaco-diff-editor").filter({ hasText: "ill" }).waitFor();
  });

  it("compares no more than the editor can bear, and says so", async () => {
    for (const word of ["old", "new"]) {
      const command = `busybox yes ${word} | head -c 20971520 > big.txt`;
      await agent.call(session, "bash", { command });
      await agent.call(session, "present_artifact", { path: "big.txt" });
    }
    const rows = window.row("Artifacts", "big.txt");
    // Both are there: no list is shown anew under the pointer, nor goes a message of before.
    await rows.nth(1).waitFor();
    await window.clearNotifications();
    await window.takeFromMenu(rows.first(), "Compare Artifacts", window.quickInput);
    await window.choose("big.txt", "big.txt");
    await window
      .notification("Too large to compare: big.txt (20 MiB)")
      .locator(".monaco-button", { hasText: "Compare the Beginnings" })
      .click();
    await window.tab("big.txt (versions), the beginnings").waitFor();
    await workbench.page.locator(".monaco-diff-editor").filter({ hasText: "new" }).waitFor();
    await window.closeEditor("big.txt (versions), the beginnings");
  });

  it("looks into the environment, by a file's name", async () => {
    await window.command("Caisson: Open Environment File");
    await window.choose("greeting", "greeting.txt");
    await window.tab("greeting.txt").waitFor();
    await window.editor.filter({ hasText: /hello\sthere/ }).waitFor();
    await window.focusEditor();
    await workbench.page.keyboard.type("x");
    await workbench.page
      .locator(".monaco-editor-overlaymessage", { hasText: /read-only/ })
      .waitFor();
  });

  it("shows the files of the environment, and what links lead to", async () => {
    const command = "mkdir deep; echo x > deep/inner.txt; ln -s deep linked";
    await agent.call(session, "bash", { command });
    await window.section("Environment Files").locator(".pane-header").click();
    await window.command("Caisson: Refresh");
    const link = window.row("Environment Files", "linked");
    const inner = window.row("Environment Files", "inner.txt");
    await until("what the link leads to is shown", async () => {
      // The tree may be shown anew in the middle of a click; another one would close it again.
      if ((await link.getAttribute("aria-expanded", { timeout: 1_000 })) === "false") {
        await link.click({ timeout: 1_000 });
      }
      await inner.waitFor({ timeout: 5_000 });
      return true;
    });
    await window.section("Environment Files").locator(".pane-header").click();
  });

  it("edits a file of the environment in place, where a person wants that", async () => {
    await window.closeEditor("greeting.txt");
    await agent.configure("caisson.environmentFiles.editable", true);
    await window.command("Caisson: Open Environment File");
    await window.choose("greeting", "greeting.txt");
    await window.editor.filter({ hasText: /hello\sthere/ }).waitFor();
    await window.focusEditor();
    await workbench.page.keyboard.press("Control+Home");
    await workbench.page.keyboard.type("oh, ");
    await workbench.page.keyboard.press("Control+S");
    await until("the file is written", async () => {
      const { structuredContent } = await agent.call(session, "bash", {
        command: "cat greeting.txt",
      });
      return (structuredContent as { stdout: string }).stdout === "oh, hello there\n" || undefined;
    });
    await agent.configure("caisson.environmentFiles.editable");
  });

  it("shows all of a name in a title", async () => {
    await agent.call(session, "write_file", { path: "in\u202etxt.exe", content: "no text file\n" });
    await agent.call(session, "present_artifact", { path: "in\u202etxt.exe" });
    await window.row("Artifacts", "in\\u{202e}txt.exe").click();
    await window.tab("in\\u{202e}txt.exe").waitFor();
    await window.editor.filter({ hasText: /no\stext\sfile/ }).waitFor();
    await window.closeEditor("in\\u{202e}txt.exe");
    await window.command("Caisson: Open Environment File");
    await window.choose("txt.exe", "in\\u{202e}txt.exe");
    await window.tab("in\\u{202e}txt.exe").waitFor();
    await window.editor.filter({ hasText: /no\stext\sfile/ }).waitFor();
    await window.closeEditor("in\\u{202e}txt.exe");
  });

  it("says at once that the configuration cannot be used, and as long as that is so", async () => {
    await configure({}, { rules: "none" });
    const told = window.notification("guard.rules").filter({ hasText: "Open Configuration" });
    await told.filter({ hasText: "no new session opens; those that exist go on." }).waitFor();
    const lasting = window.section("Sessions").getByText("No new session opens: config");
    await lasting.waitFor();
    await picture("configuration");
    await configure({});
    await lasting.waitFor({ state: "hidden" });
    await window.clearNotifications();
  });

  it("completes and checks the configuration", async () => {
    await configure({ typo: { backend: "local", imagge: "debian" } });
    await window.command("Caisson: Open Configuration");
    await window.tab("config.json").waitFor();
    const found = await until("the editor finds the mistake", async () => {
      const problems = await agent.problems(workbench.configuration);
      return problems.length > 0 ? problems.join() : undefined;
    });
    expect(found).toContain("imagge");
    await agent.edit(workbench.configuration, '"imagge": "debian"');
    await window.focusEditor();
    await workbench.page.keyboard.type(", ");
    await workbench.page.keyboard.press("Control+Space");
    const suggestion = window.suggestions.filter({ hasText: "cpus" });
    await suggestion.waitFor();
    await picture("completion");
    await suggestion.click();
    await window.editor.filter({ hasText: /"cpus"/ }).waitFor();
    await window.revert();
    await configure({});
    await window.closeEditor("config.json");
    await window.clearNotifications();
  });

  it("leads a newcomer to what there is", async () => {
    await window.command("Welcome: Open Walkthrough");
    await window.choose("Caisson", "Caisson: Environments for Agents");
    await window.step("Choose an environment").locator("h3").waitFor();
    await picture("walkthrough");
    for (const [title, button, asks] of [
      ["Choose an environment", "Choose Environment", "Choose Environment"],
      ["See what runs, and stop it", "Run in Environment", "Run in Environment"],
    ] as const) {
      const step = window.step(title);
      await step.locator("h3").click();
      await step.locator(".monaco-button", { hasText: button }).click();
      await window.quickInput.filter({ hasText: asks }).waitFor();
      await workbench.page.keyboard.press("Escape");
      await window.quickInput.waitFor({ state: "hidden" });
    }
    const last = window.step("Describe your own environments");
    await last.locator("h3").click();
    await last.locator(".monaco-button", { hasText: "Open Configuration" }).click();
    await window.tab("config.json").waitFor();
    await window.closeEditors();
  });

  it("gives language models the session's tools", async () => {
    const said = await agent.invokeTool("caisson_read_file", { path: "greeting.txt" });
    expect(said.join("")).toContain("hello there");
  });

  it("runs nothing of a language model that a person denies", async () => {
    const refused = agent.invokeTool("caisson_bash", { command: "echo no > refused.txt" });
    const failure = expect(refused).rejects.toThrow(AgentError);
    await window.dialog.filter({ hasText: "echo no > refused.txt" }).waitFor();
    expect(await window.dialog.textContent()).toContain("In isolated (project):");
    await picture("tool");
    await workbench.page.keyboard.press("Escape");
    await failure;
    const { structuredContent } = await agent.call(session, "bash", { command: "ls" });
    expect((structuredContent as { stdout: string }).stdout).not.toContain("refused.txt");
  });

  it("says what is wrong and what to do, and never how it came about", async () => {
    await configure({ broken: { backend: "docker", image: "no-such-image:1", pull: "never" } });
    await window.command("Caisson: Choose Environment");
    await window.choose("broken", "broken");
    const message = window
      .notification("no-such-image:1")
      .filter({ hasText: "Choose Environment" });
    await message.waitFor();
    expect(await message.textContent()).not.toMatch(/\n\s+at |goroutine|undefined/);
    await picture("error");
    await window.status.filter({ hasText: "isolated" }).waitFor(); // the window's own is untouched
    await window.clearNotifications();
  });

  it("reports on its health", async () => {
    await window.command("Caisson: Show Doctor Report");
    await window.tab("Caisson Doctor Report").waitFor({ timeout: doctorBudget });
    await window.editor.filter({ hasText: /local:\sconfinement/ }).waitFor();
    await picture("doctor");
  });

  it("asks before what a rule wants confirmed, and takes closing for no", async () => {
    const rule = {
      tools: ["shell.bash"],
      match: { command: "echo should *" },
      action: "confirm",
      reason: "Somebody looks at this.",
    };
    await configure({ guarded: { backend: "local" } }, { rules: [rule] });
    await window.closeEditors();
    const asked = await agent.open("guarded");
    const call = agent.call(asked, "bash", { command: "echo should not run" });
    const failure = expect(call).rejects.toThrow(AgentError);
    await window.dialog.filter({ hasText: "echo should not run" }).waitFor();
    await picture("confirmation");
    await workbench.page.keyboard.press("Escape");
    await failure;

    // What stands far to the right must be seen, too.
    const command = `echo should run${" ".repeat(400)}; echo "and more"`;
    const again = agent.call(asked, "bash", { command });
    await window.dialog.filter({ hasText: "echo should run" }).waitFor();
    // Whoever was typing allows nothing: Enter shows what would run.
    await workbench.page.keyboard.press("Enter");
    await window.tab("What bash would do").waitFor();
    await window.editor.filter({ hasText: /echo\sshould\srun/ }).waitFor();
    const rest = window.editor.getByText(/and\smore/).last();
    await until("the end of the line can be seen", async () => {
      const [shown, editor] = await Promise.all([
        rest.boundingBox({ timeout: 1_000 }),
        window.editor.boundingBox({ timeout: 1_000 }),
      ]);
      const inSight = shown !== null && editor !== null && shown.x < editor.x + editor.width - 50;
      return inSight || undefined;
    });
    const question = window.notification("An agent wants to run bash in guarded");
    await question.locator(".monaco-button", { hasText: "Allow Once" }).click();
    expect((await again).structuredContent).toMatchObject({ stdout: "should run\nand more\n" });

    // What is allowed for the session holds for the same that has been asked meanwhile.
    const same = Array.from({ length: 3 }, () =>
      agent.call(asked, "bash", { command: "echo should repeat" }),
    );
    await window.dialog.filter({ hasText: "echo should repeat" }).waitFor();
    const more = await window.countDialogs();
    await window.dialog.locator(".monaco-button", { hasText: "This Session" }).click();
    for (const { structuredContent } of await Promise.all(same)) {
      expect(structuredContent).toMatchObject({ stdout: "should repeat\n" });
    }
    expect(await more()).toBe(0);
    await window.dialog.waitFor({ state: "hidden" });
  });

  it("asks in a low window so that all can be read and answered", async () => {
    const small = { width: 640, height: 400 };
    const usual = workbench.page.viewportSize() ?? small;
    const asked = await agent.open("guarded");
    await workbench.page.setViewportSize(small);
    const lines = Array.from({ length: 80 }, (_, i) => `: ${`word${i} `.repeat(20)}`);
    const call = agent.call(asked, "bash", {
      command: `echo should fit\n${lines.join("\n")}\necho the end`,
      timeout_seconds: 60,
    });
    await window.dialog.filter({ hasText: "echo should fit" }).waitFor();
    const buttons = window.dialog.locator(".monaco-button");
    await window.fits(buttons, 4);
    await window.fits(window.dialog, 1);
    await picture("low-question");
    await workbench.page.keyboard.press("Enter");
    await window.tab("What bash would do").waitFor();
    const question = window.notification("An agent wants to run bash in guarded");
    await question.locator(".monaco-button", { hasText: "Allow Once" }).waitFor();
    await window.fits(question.locator(".monaco-button"), 3);
    await picture("low-answer");
    // The whole can be reached: its last line is that of the other arguments.
    await window.focusEditor();
    await workbench.page.keyboard.press("Control+End");
    await window.editor.filter({ hasText: "}" }).waitFor();
    await question.locator(".monaco-button", { hasText: "Allow Once" }).click();
    expect((await call).structuredContent).toMatchObject({ stdout: "should fit\nthe end\n" });
    await workbench.page.setViewportSize(usual);
    await window.closeEditor("What bash would do");
  });

  it("interrupts a process that reads nothing of a paste", async () => {
    const deaf = await agent.open("guarded");
    // Not what the terminal of the listener says, which stays open.
    const script = "stty -icanon -echo; echo no ear; sleep 600";
    await agent.start(deaf, script, { label: "deaf", tty: { cols: 80, rows: 24 } });
    const row = window.row("Processes", "deaf");
    await row.filter({ hasText: "running" }).click();
    await window.terminal.filter({ hasText: "no ear" }).waitFor();
    await window.pasteInTerminal("x".repeat(200_000));
    await window.pressInTerminal("Control+C");
    await window.terminal.filter({ hasText: "not read is dropped" }).waitFor();
    await row.filter({ hasText: /ended by SIGINT|exit code 130/ }).waitFor();
    await window.clearNotifications();
  });

  it("makes no links of what a process is called", async () => {
    await agent.start(session, "true", { label: "[look](command:workbench.action.openSettings)" });
    const end = window.notification("exited").filter({ hasText: "look" });
    await end.waitFor();
    expect(await end.textContent()).toContain("(command:workbench.action.openSettings)");
    expect(await end.locator("a[href]").count()).toBe(0);
    await window.clearNotifications();
  });

  it("has everything back after the service was killed", async () => {
    const earlier = session;
    session = await agent.open("isolated");
    await agent.start(session, "echo still here; sleep 600", { label: "survivor" });
    await window.row("Processes", "survivor").filter({ hasText: "running" }).waitFor();
    const asked = ["echo should wait", "echo should wait, too"].map((command) =>
      expect(agent.call(session, "bash", { command })).rejects.toThrow(AgentError),
    );
    await window.dialog.filter({ hasText: "echo should wait" }).waitFor();
    const [pid] = await workbench.services();
    expect(pid).toBeDefined();
    process.kill(pid as number, "SIGKILL");
    await Promise.all(asked);
    const more = await window.countDialogs();
    await window.dialog.locator(".monaco-button", { hasText: "Allow Once" }).click();
    await window.notification("The answer came too late").waitFor();
    // Of the other call nobody is asked: it is over as well. What the extension has shown
    // is shown when the window has taken a setting of it that comes after.
    await agent.configure("caisson.environmentFiles.editable");
    expect(await more()).toBe(0);
    await window.dialog.waitFor({ state: "hidden" });
    await until("another service runs", async () => {
      const now = await workbench.services();
      return now.length === 1 && now[0] !== pid ? now : undefined;
    });
    // The session that the window used before is open again, too, when a call comes.
    await agent.call(earlier, "read_file", { path: "greeting.txt" });
    await window.row("Processes", "survivor").filter({ hasText: "running" }).waitFor();
    const again = await agent.open();
    expect(again.id).toBe(session.id);
  });

  it("has everything back after the window was reloaded", async () => {
    agent.close();
    await workbench.reload();
    await window.status.waitFor();
    activations.push(await activation());
    await window.showCaisson();
    await window.status.filter({ hasText: "isolated" }).waitFor();
    await window.row("Processes", "survivor").filter({ hasText: "running" }).waitFor();
    await window.row("Processes", "listener").filter({ hasText: "stopped" }).waitFor();
    await window.row("Artifacts", "dot.png").waitFor();
    agent = await Agent.connect(workbench.socket);
    expect((await agent.open()).id).toBe(session.id);
  });

  it("says of a session that is busy elsewhere who has it, and takes no other", async () => {
    agent.close();
    await workbench.leave();
    const release = await workbench.hold(session);
    await workbench.enter();
    await window.status.filter({ hasText: "isolated" }).waitFor();
    await window.showCaisson();
    const row = window.row("Sessions", /isolated.*here/);
    await row.filter({ hasText: /in use by pid \d+/ }).waitFor();
    await window.section("Processes").getByText("is not known here").waitFor();
    agent = await Agent.connect(workbench.socket);
    await expect(agent.open()).rejects.toMatchObject({ data: { kind: "sessionBusy" } });
    await picture("busy");
    await release();
    // It is this window's again as soon as somebody uses it, without a click.
    await row.filter({ hasNotText: "in use" }).waitFor();
    expect((await agent.open()).id).toBe(session.id);
    await window.row("Processes", "survivor").filter({ hasText: "running" }).waitFor();
  });

  it("follows what another window does with its sessions", async () => {
    const row = window.row("Sessions", "library");
    const other = await workbench.another();
    const workspace = pathToFileURL(workbench.library).href;
    const { session: theirs } = await other.request("session/open", { workspace, connect: false });
    await row.filter({ hasText: /in use by pid \d+/ }).waitFor();
    await picture("elsewhere");
    await writeFile(join(workbench.library, "theirs.txt"), "made there\n");
    const { artifact } = await other.request("artifact/publish", {
      sessionId: theirs.id,
      path: "theirs.txt",
    });
    await window.row("Artifacts", "theirs.txt").waitFor();
    await other.request("artifact/delete", { uri: artifact.uri });
    await window.row("Artifacts", "theirs.txt").waitFor({ state: "hidden" });
    await other.stop();
    await row.filter({ hasText: "not started" }).waitFor();
    const third = await workbench.another();
    await third.request("session/delete", { sessionId: theirs.id });
    await row.waitFor({ state: "hidden" });
    await third.stop();
  });

  it("says that a program is too old, and what to do", async () => {
    const other = await workbench.otherProgram();
    await window.clearNotifications();
    await agent.configure("caisson.path", other);
    await window
      .notification("goes on as it was started")
      .locator(".monaco-button", { hasText: "Restart Service" })
      .click();
    const message = window.notification("speaks version 99").filter({ hasText: "Open Settings" });
    await message.filter({ hasText: "Update whichever of the two is older." }).waitFor();
    await window.says("does not run");
    await window.row("Sessions", /isolated.*service down.*here/).waitFor();
    await window.row("Sessions", /ready/).first().waitFor({ state: "hidden" });
    await picture("version");
    await window.clearNotifications();
    // It needs nobody who starts it again.
    await agent.configure("caisson.path");
    await window.row("Sessions", "service down").first().waitFor({ state: "hidden" });
    await window.row("Processes", "survivor").filter({ hasText: "running" }).waitFor();
  });

  it("says in an open terminal that its session was deleted", async () => {
    const row = window.row("Processes", "survivor");
    await row.click();
    await window.terminal.filter({ hasText: "still here" }).waitFor();
    const used = window.row("Sessions", /isolated.*here/);
    await window.takeFromMenu(used, "Delete Session", window.dialog);
    await window.dialog.locator(".monaco-button", { hasText: "Delete" }).click();
    await window.terminal.filter({ hasText: "[the session was deleted]" }).waitFor();
    expect(await window.terminal.textContent()).not.toContain("cancel");
    await picture("deleted");
  });

  it("keeps the folders of a window apart, and runs a call where it was confirmed", async () => {
    agent.close();
    await workbench.openWorkspace("project", "library");
    // What is trusted before they are there is a workspace without folders, and the
    // editor asks about each that comes then.
    agent = await connectWithFolders(2);
    await window.status.filter({ hasText: "Caisson" }).waitFor();
    await window.command("Workspaces: Manage Workspace Trust");
    await window.trust();
    expect(await workbench.services()).toEqual([]); // nothing needed one yet
    activations.push(await activation());
    const first = await agent.open("isolated", 0);
    const second = await agent.open("local", 1);
    expect(first.workspace).not.toBe(second.workspace);
    const [project, library] = [join(workbench.folder, "a.txt"), join(workbench.library, "b.txt")];
    await agent.edit(project);
    await window.status.filter({ hasText: "isolated" }).waitFor();
    await agent.edit(library);
    await window.status.filter({ hasText: "local" }).waitFor();

    const ran = agent.invokeTool("caisson_bash", { command: "pwd" });
    await window.dialog.filter({ hasText: "In local (library):" }).waitFor();
    await agent.edit(project);
    await window.status.filter({ hasText: "isolated" }).waitFor();
    await picture("folders");
    await window.dialog.locator(".monaco-button", { hasText: "Yes" }).click();
    expect((await ran).join()).toContain(workbench.library);

    // Of two equal calls nobody can tell which question was whose: it is asked again.
    await agent.edit(library);
    await window.status.filter({ hasText: "local" }).waitFor();
    const twice = [agent.invokeTool("caisson_bash", { command: "pwd" })];
    await window.dialog.filter({ hasText: "In local (library):" }).waitFor();
    await agent.edit(project);
    await window.status.filter({ hasText: "isolated" }).waitFor();
    twice.push(agent.invokeTool("caisson_bash", { command: "pwd" }));
    // What is behind it on its way there and back: the other one is asked about by then.
    await agent.edit(project);
    await window.dialog.locator(".monaco-button", { hasText: "Yes" }).click();
    await window.dialog.filter({ hasText: "In isolated (project):" }).waitFor();
    await window.dialog.locator(".monaco-button", { hasText: "Yes" }).click();
    const own = window.dialog.filter({ hasText: "Run bash in isolated (project)?" });
    await own.locator(".monaco-button", { hasText: "Run" }).click();
    await own.locator(".monaco-button", { hasText: "Run" }).click();
    await Promise.all(twice);
  });

  it("follows the folders of a window that go and come", async () => {
    await window.showCaisson();
    const { id } = await agent.open(undefined, 1);
    const row = window.row("Sessions", /library.*local/);
    await row.filter({ hasText: "here" }).waitFor();
    await agent.setSecondFolder();
    await row.filter({ hasNotText: "here" }).waitFor();
    await window.row("Sessions", /project.*isolated.*here/).waitFor();
    await agent.setSecondFolder(workbench.library);
    await row.filter({ hasText: "here" }).waitFor();
    expect((await agent.open(undefined, 1)).id).toBe(id);
  });

  it("is there at once", () => {
    console.info(activations.map(({ ms, budget }) => `activated in ${ms} of ${budget} ms`).join());
    expect(activations.some(({ ms, budget }) => ms < budget)).toBe(true);
  });
});

/** How long the extension's start took, and might: a waiting time that others cause is not its own. */
async function activation(): Promise<{ ms: number; budget: number }> {
  const sharing = Math.max(1, (loadavg()[0] ?? 0) / availableParallelism());
  const ms = await window.activation("Caisson");
  return { ms, budget: Math.round(activationBudget * sharing) };
}

/**
 * Connects to the agent of a window that has so many folders. An editor in a browser starts
 * with what it keeps of a workspace file, of a new one nothing. When the file itself is read
 * at just that moment, the editor stays without folders, as its own list of files says, until
 * it is loaded again.
 */
async function connectWithFolders(count: number): Promise<Agent> {
  for (let attempts = 3; ; attempts--) {
    const connected = await Agent.connect(workbench.socket);
    const folders = async () => ((await connected.folders()).length === count ? true : undefined);
    try {
      await until("the window has its folders", folders, foldersBudget);
      return connected;
    } catch (thrown) {
      connected.close();
      if (attempts === 1) {
        throw thrown;
      }
      console.info("the editor has no folders: it is loaded again");
      await workbench.reload();
    }
  }
}

/** Writes the user's configuration: a container, the profiles and the guard. */
async function configure(profiles: object, guard?: object): Promise<void> {
  await mkdir(dirname(workbench.configuration), { recursive: true });
  const isolated = { backend: "docker", image, pull: "never" };
  const configuration = {
    execution_environments: { profiles: { isolated, ...profiles } },
    ...(guard === undefined ? {} : { guard }),
  };
  // In one step: nobody reads a half of it.
  const written = `${workbench.configuration}.new`;
  await writeFile(written, JSON.stringify(configuration, null, 2));
  await rename(written, workbench.configuration);
}
