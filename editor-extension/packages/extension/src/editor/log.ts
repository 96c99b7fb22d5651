import * as vscode from "vscode";

/** The output channel: what the service logs, and what the extension does with it. */
export class Log implements vscode.Disposable {
  private channel: vscode.OutputChannel | undefined;
  private over = false;

  info(line: string): void {
    this.open()?.appendLine(`${new Date().toISOString()} ${line}`);
  }

  /** Adds what the service wrote, as it stands. */
  append(text: string): void {
    this.open()?.append(text);
  }

  show(): void {
    this.open()?.show(true);
  }

  dispose(): void {
    this.over = true;
    this.channel?.dispose();
  }

  /**
   * The channel, made when there is something to say: the editor makes a file for it. What
   * a service says that ends after its window is nobody's.
   */
  private open(): vscode.OutputChannel | undefined {
    if (this.over) {
      return undefined;
    }
    this.channel ??= vscode.window.createOutputChannel("Caisson", "log");
    return this.channel;
  }
}
