import * as vscode from "vscode";

/** The output channel: what the service logs, and what the extension does with it. */
export class Log implements vscode.Disposable {
  private readonly channel = vscode.window.createOutputChannel("Caisson", "log");

  info(line: string): void {
    this.channel.appendLine(`${new Date().toISOString()} ${line}`);
  }

  /** Adds what the service wrote, as it stands. */
  append(text: string): void {
    this.channel.append(text);
  }

  show(): void {
    this.channel.show(true);
  }

  dispose(): void {
    this.channel.dispose();
  }
}
