import type { Locator, Page } from "playwright-core";
import { until } from "./until.js";

const statusItem = '.statusbar-item[id="caisson-dev.caisson.caisson.environment"]';

/** What a person sees and does in the window. */
export class Window {
  constructor(private readonly page: Page) {}

  /** Shows the view of the activity bar's item. */
  async showCaisson(): Promise<void> {
    const item = this.page.locator('.activitybar .action-label[aria-label^="Caisson"]');
    await item.waitFor();
    if (!(await this.page.locator('.sidebar .composite.title:has-text("Caisson")').isVisible())) {
      await item.click();
    }
    await this.section("Sessions").waitFor();
  }

  /** One of the views in the side bar. */
  section(title: string): Locator {
    return this.page.locator(`.sidebar .pane:has(.pane-header[aria-label^="${title}"])`);
  }

  /** A line of one of the views. */
  row(section: string, text: string | RegExp): Locator {
    return this.section(section).locator(".monaco-list-row").filter({ hasText: text });
  }

  /** The status bar item. */
  get status(): Locator {
    return this.page.locator(statusItem);
  }

  /** Waits until the status bar item says so to those who cannot see it. */
  async says(state: string): Promise<void> {
    await this.page.locator(`${statusItem}[aria-label*="${state}"]`).waitFor();
  }

  /** Trusts the folders of the window, in the editor's own view for that, which is open. */
  async trust(): Promise<void> {
    const editor = this.page.locator(".workspace-trust-editor");
    await editor.waitFor();
    await editor.locator(".monaco-button", { hasText: "Trust" }).first().click();
    await editor.filter({ hasText: "You trust this" }).waitFor();
    await this.command("View: Close Editor");
  }

  /** Runs a command by its title, as with F1. */
  async command(title: string): Promise<void> {
    await this.page.keyboard.press("F1");
    await this.choose(`>${title}`, title);
    // What is typed next is not for this list.
    await this.page.waitForFunction(() => {
      const list = document.querySelector<HTMLElement>(".quick-input-widget");
      const typed = list?.querySelector<HTMLInputElement>("input.input")?.value ?? "";
      return list === null || list.style.display === "none" || !typed.startsWith(">");
    });
  }

  /** The open list or question at the top of the window. */
  get quickInput(): Locator {
    return this.page.locator(".quick-input-widget:visible");
  }

  /** What the editor suggests at the cursor. */
  get suggestions(): Locator {
    return this.page.locator(".suggest-widget.visible .monaco-list-row");
  }

  /** The step of the open walkthrough that has the title. */
  step(title: string): Locator {
    return this.page.locator(".getting-started-step").filter({ hasText: title });
  }

  /** Shows the window in another colour theme. */
  async theme(name: "Light Modern" | "Dark Modern"): Promise<void> {
    await this.command("Preferences: Color Theme");
    await this.choose(name, name);
    const kind = name === "Light Modern" ? "vs" : "vs-dark";
    await this.page.locator(`.monaco-workbench.${kind}`).waitFor();
  }

  /** Types into the open list and takes the line with the text. */
  async choose(typed: string, text: string): Promise<void> {
    const input = this.page.locator(".quick-input-widget input.input");
    await input.waitFor();
    await input.fill(typed);
    await this.page
      .locator(".quick-input-list .monaco-list-row")
      .filter({ hasText: text })
      .first()
      .click();
  }

  /** How long the editor says that an extension's activation took, in ms. */
  async activation(extension: string): Promise<number> {
    await this.command("Developer: Show Running Extensions");
    const list = this.page.locator(".runtime-extensions-editor .monaco-list");
    const shown = list
      .locator(".monaco-list-row")
      .filter({ hasText: extension })
      .locator(".activation-time")
      .filter({ hasText: /\d+ms/ });
    // The slowest stand first, and only what can be seen is in the page: from the end
    // it is begun again.
    let turns = 0;
    const time = await until(`the editor says how long ${extension} took`, async () => {
      if ((await shown.count()) > 0) {
        // Its line may move away from under the look.
        return (await shown.first().textContent({ timeout: 1_000 })) ?? undefined;
      }
      await list.hover();
      await this.page.mouse.wheel(0, ++turns % 20 === 0 ? -10_000 : 150);
      return undefined;
    });
    await this.command("View: Close Editor");
    return Number(/\d+/.exec(time)?.[0]);
  }

  /** A message in the corner. */
  notification(text: string | RegExp): Locator {
    return this.page.locator(".notification-list-item").filter({ hasText: text });
  }

  /** The open modal question. */
  get dialog(): Locator {
    return this.page.locator(".monaco-dialog-box");
  }

  /** The text of the terminal in the panel. */
  get terminal(): Locator {
    return this.page.locator(".terminal-wrapper.active .xterm");
  }

  /** Gives the terminal the keyboard: a list that is shown anew may have taken it. */
  private async focusTerminal(): Promise<void> {
    await this.focus(
      "the terminal",
      // Not by a click: what passes over the terminal would take that.
      this.terminal.locator(".xterm-helper-textarea"),
      this.page.locator(".terminal-wrapper.active .xterm.focus"),
    );
  }

  /** Gives the open editor the keyboard; its cursor stays where it is. */
  async focusEditor(): Promise<void> {
    const editor = ".editor-group-container.active .monaco-editor";
    await this.focus(
      "the editor",
      this.page.locator(`${editor} .inputarea, ${editor} .native-edit-context`).first(),
      this.page.locator(`${editor}.focused`),
    );
  }

  private async focus(what: string, input: Locator, focused: Locator): Promise<void> {
    await until(`${what} has the keyboard`, async () => {
      await input.focus({ timeout: 1_000 });
      return (await focused.first().isVisible()) || undefined;
    });
  }

  /** Types into the terminal: a text and Enter. */
  async typeInTerminal(line: string): Promise<void> {
    await this.pasteInTerminal(line);
    await this.pressInTerminal("Enter");
  }

  /** Puts a text into the terminal at once, as a paste does. */
  async pasteInTerminal(text: string): Promise<void> {
    await this.focusTerminal();
    await this.page.keyboard.insertText(text);
  }

  /** Presses a key, or several together, in the terminal. */
  async pressInTerminal(keys: string): Promise<void> {
    await this.focusTerminal();
    await this.page.keyboard.press(keys);
  }

  /** Whether a person can see and click each of the buttons, in a window of that size. */
  async inSight(buttons: Locator): Promise<boolean> {
    const size = this.page.viewportSize() ?? { width: 0, height: 0 };
    const boxes = await Promise.all((await buttons.all()).map((button) => button.boundingBox()));
    return boxes.every(
      (box) =>
        box !== null &&
        box.x >= 0 &&
        box.y >= 0 &&
        box.x + box.width <= size.width &&
        box.y + box.height <= size.height,
    );
  }

  /** Takes a line of the open context menu, which takes no click in its first moment. */
  async takeFromMenu(text: string): Promise<void> {
    const item = this.page.locator(".context-view .action-menu-item").filter({ hasText: text });
    await item.hover();
    await this.page.keyboard.press("Enter");
  }

  /** The text of the editor that is shown. */
  get editor(): Locator {
    return this.page.locator(".editor-group-container.active .view-lines");
  }

  /** The title of the editor that is open. */
  tab(name: string | RegExp): Locator {
    return this.page.locator(".tabs-container .tab").filter({ hasText: name });
  }
}
