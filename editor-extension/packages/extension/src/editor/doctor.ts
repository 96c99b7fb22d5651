import { execFile } from "node:child_process";
import * as vscode from "vscode";
import { type Caisson, settings } from "../caisson.js";
import { doctorBudget, doctorReport } from "../model/doctor.js";
import { commonArguments } from "../service/locate.js";

const scheme = "caisson-doctor";

/** The doctor's report as a document. */
export class DoctorReport implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly uri = vscode.Uri.from({ scheme, path: "Caisson Doctor Report" });
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(
    scheme,
    this,
  );
  private report = "";
  private readonly ending = new AbortController();

  constructor(private readonly caisson: Caisson) {}

  provideTextDocumentContent(): string {
    return this.report;
  }

  async show(): Promise<void> {
    const program = await this.caisson.program();
    const args = commonArguments(settings().get("serviceArguments"));
    await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title: "Caisson looks for problems" },
      async () => {
        this.report = `${program.path} (from ${program.from})\n\n${await run(program.path, args, this.ending.signal)}`;
      },
    );
    this.changed.fire(this.uri);
    await vscode.window.showTextDocument(this.uri, { preview: true });
  }

  dispose(): void {
    this.ending.abort();
    this.registration.dispose();
    this.changed.dispose();
  }
}

function run(program: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  const options = { timeout: doctorBudget, signal, windowsHide: true };
  return new Promise((resolve, reject) => {
    execFile(program, ["doctor", ...args], options, (error, stdout, stderr) => {
      try {
        resolve(doctorReport(error, stdout, stderr));
      } catch (thrown) {
        reject(thrown);
      }
    });
  });
}
