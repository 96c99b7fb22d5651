import * as vscode from "vscode";

/** The output channel: what the service logs, and what the extension does with it. */
export class Log implements vscode.Disposable {
  private channel: vscode.OutputChannel | undefined;

  info(line: string): void {
    this.open().appendLine(`${new Date().toISOString()} ${line}`);
  }

  /** Adds what the service wrote, as it stands. */
  append(text: string): void {
    this.open().append(text);
  }

  show(): void {
    this.open().show(true);
  }

  dispose(): void {
    this.channel?.dispose();
  }

  /** The channel, made when there is something to say: the editor makes a file for it. */
  private open(): vscode.OutputChannel {
    this.channel ??= vscode.window.createOutputChannel("Caisson", "log");
    return this.channel;
  }
}
