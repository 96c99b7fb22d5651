import type { FrameLocator, Locator, Page } from "playwright-core";
import { until } from "./until.js";

const statusItem = '.statusbar-item[id="caisson-dev.caisson.caisson.environment"]';

const quickInputField = ".quick-input-widget input.input";

/** What a person sees and does in the window. */
export class Window {
  constructor(private readonly page: Page) {}

  /** Shows the view of the activity bar's item. */
  async showCaisson(): Promise<void> {
    const item = this.page.locator('.activitybar .action-label[aria-label^="Caisson"]');
    const title = this.page.locator('.sidebar .composite.title:has-text("Caisson")');
    await until("the side bar shows Caisson", async () => {
      // A click on the item of what is shown already would hide it.
      if (!(await title.isVisible())) {
        await item.click({ timeout: 5_000 });
        await title.waitFor({ timeout: 5_000 });
      }
      return true;
    });
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
    await this.close(editor);
  }

  /**
   * Runs a command by its title, as with F1. A window that starts takes no key yet, and the
   * list closes when something else gets the keyboard: then it is opened again.
   */
  async command(title: string): Promise<void> {
    const input = this.page.locator(quickInputField);
    const typed = `>${title}`;
    await until(`the command ${title} is taken`, async () => {
      // Where the list is open still it stays so.
      await this.page.keyboard.press("F1");
      await input.fill(typed, { timeout: 5_000 });
      await this.line(title).click({ timeout: 5_000 });
      return true;
    });
    // What is typed next is not for this list.
    await this.page.waitForFunction(() => {
      const list = document.querySelector<HTMLElement>(".quick-input-widget");
      const typed = list?.querySelector<HTMLInputElement>("input.input")?.value ?? "";
      return list === null || list.style.display === "none" || !typed.startsWith(">");
    });
  }

  /** Closes the open editor, which has the name. */
  async closeEditor(name: string): Promise<void> {
    await this.close(this.tab(name));
  }

  private async close(editor: Locator): Promise<void> {
    await this.command("View: Close Editor");
    // Whatever is shown instead gets the keyboard first, and then what comes next.
    await editor.waitFor({ state: "hidden" });
  }

  /** Closes all editors. */
  async closeEditors(): Promise<void> {
    await this.command("View: Close All Editors");
    await this.page.locator(".tabs-container .tab").first().waitFor({ state: "hidden" });
  }

  /** Takes the open editor's text back to what the file has. */
  async revert(): Promise<void> {
    await this.command("File: Revert File");
    await this.page.locator(".tabs-container .tab.dirty").first().waitFor({ state: "hidden" });
  }

  /** Takes all messages in the corner away: no more than three are shown at the same time. */
  async clearNotifications(): Promise<void> {
    await this.command("Notifications: Clear All Notifications");
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
    const input = this.page.locator(quickInputField);
    await input.waitFor();
    await input.fill(typed);
    await this.line(text).click();
  }

  /** The first line of the open list that has the text. */
  private line(text: string): Locator {
    return this.page
      .locator(".quick-input-list .monaco-list-row")
      .filter({ hasText: text })
      .first();
  }

  /** How long the editor says that an extension's activation took, in ms. */
  async activation(extension: string): Promise<number> {
    await this.command("Developer: Show Running Extensions");
    const editor = this.page.locator(".runtime-extensions-editor");
    const list = editor.locator(".monaco-list");
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
      await list.hover({ timeout: 1_000 });
      await this.page.mouse.wheel(0, ++turns % 20 === 0 ? -10_000 : 150);
      return undefined;
    });
    await this.close(editor);
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

  /** Counts the modal questions that are opened from now on, however briefly they are shown. */
  async countDialogs(): Promise<() => Promise<number>> {
    const opened = await this.page.evaluateHandle(() => {
      const shown = document.getElementsByClassName("monaco-dialog-box");
      const before = new Set(shown);
      const opened = new Set<Element>();
      const look = () => {
        for (const box of shown) {
          if (!before.has(box)) {
            opened.add(box);
          }
        }
      };
      new MutationObserver(look).observe(document, { childList: true, subtree: true });
      return opened;
    });
    return () => opened.evaluate(({ size }) => size);
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

  /** Waits until a person can see and click so many parts, in a window of its size. */
  async fits(parts: Locator, count: number): Promise<void> {
    const size = this.page.viewportSize() ?? { width: 0, height: 0 };
    await until(`${count} parts are in sight`, async () => {
      const all = await parts.all();
      const boxes = await Promise.all(all.map((part) => part.boundingBox({ timeout: 1_000 })));
      const seen = boxes.filter(
        (box) =>
          box !== null &&
          box.x >= 0 &&
          box.y >= 0 &&
          box.x + box.width <= size.width &&
          box.y + box.height <= size.height,
      );
      return (all.length === count && seen.length === count) || undefined;
    });
  }

  /**
   * Takes a line of what a right click on a row offers, and waits for what it leads to. The
   * menu closes when something else is shown, and takes nothing in its first moment: then it
   * is tried again. A line that was taken is not, whatever came of it.
   */
  async takeFromMenu(row: Locator, text: string, leadsTo: Locator): Promise<void> {
    const item = this.page.locator(".context-view .action-menu-item").filter({ hasText: text });
    await until(`${text} is taken from the menu`, async () => {
      if (!(await item.isVisible())) {
        await row.click({ button: "right", timeout: 5_000 });
      }
      await item.hover({ timeout: 5_000 });
      // Of the line, and of nothing that has the keyboard instead.
      await item.press("Enter", { timeout: 5_000 });
      await item.waitFor({ state: "hidden", timeout: 10_000 });
      return true;
    });
    await leadsTo.waitFor();
  }

  /**
   * Clicks a button that the list's row shows while the pointer is over it. Its line may be
   * shown anew in the middle of a click, which then reaches no button, and is made again; one
   * that has reached it is not, whatever came of it.
   */
  async clickOnRow(row: Locator, button: string): Promise<void> {
    const selector = `.action-label[aria-label^="${button}"]`;
    const reached = await this.page.evaluateHandle((selector) => {
      const reached = { clicks: 0 };
      const seen = ({ target }: MouseEvent) => {
        if (target instanceof Element && target.closest(selector) !== null) {
          reached.clicks++;
        }
      };
      document.addEventListener("click", seen, { capture: true });
      return reached;
    }, selector);
    await until(`a click reaches ${button}`, async () => {
      if ((await reached.evaluate(({ clicks }) => clicks)) === 0) {
        await row.hover({ timeout: 1_000 });
        await row.locator(selector).click({ timeout: 1_000 });
      }
      return (await reached.evaluate(({ clicks }) => clicks)) > 0 || undefined;
    });
  }

  /** What is shown in the webview of the open editor. */
  get webview(): FrameLocator {
    // For a moment there may be the one before as well, which goes.
    const outer = this.page.locator("iframe.webview.ready").last().contentFrame();
    return outer.frameLocator("iframe#active-frame");
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
