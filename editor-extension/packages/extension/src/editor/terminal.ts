import type { Process } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { type Edited, Line } from "../model/line.js";
import { type Following, Outputs } from "../model/output.js";
import { idOf, isAlive } from "../model/processes.js";
import { note, TerminalText } from "../model/terminalText.js";
import { Typing, type Writing } from "../model/typing.js";
import { bytes, nameOf, status } from "../model/words.js";
import type { Connection } from "../service/connection.js";
import { serviceError } from "../service/errors.js";

/** The open terminals by process. */
export class Terminals implements vscode.Disposable {
  private readonly open = new Map<string, vscode.Terminal>();
  private readonly outputs = new Outputs();
  private readonly closing: vscode.Disposable;

  constructor(private readonly caisson: Caisson) {
    this.closing = vscode.window.onDidCloseTerminal((terminal) => {
      for (const [id, known] of this.open) {
        if (known === terminal) {
          this.open.delete(id);
        }
      }
    });
  }

  /** Whether somebody can see the process's output now. */
  isSeen(processId: string): boolean {
    const terminal = this.open.get(processId);
    return terminal !== undefined && vscode.window.activeTerminal === terminal;
  }

  /** Shows a process's terminal, a new one if it has none. */
  async show(process: Process): Promise<void> {
    if (!this.open.has(process.id)) {
      await this.caisson.sessions.ready();
    }
    // Looked up behind the waiting: a second click may have made it in the meantime.
    let terminal = this.open.get(process.id);
    if (terminal === undefined) {
      terminal = vscode.window.createTerminal({
        name: nameOf(process),
        iconPath: new vscode.ThemeIcon("play-circle"),
        pty: new ProcessTerminal(this.caisson, this.outputs, process),
      });
      this.open.set(process.id, terminal);
    }
    terminal.show();
  }

  dispose(): void {
    this.closing.dispose();
    for (const terminal of this.open.values()) {
      terminal.dispose();
    }
  }
}

/**
 * A process as a terminal. One that has a terminal of its own gets every key; to
 * another one a line is sent with Enter, after it was edited here.
 */
class ProcessTerminal implements vscode.Pseudoterminal {
  private readonly written = new vscode.EventEmitter<string>();
  readonly onDidWrite = this.written.event;
  private text = new TextDecoder("utf-8");
  private screened = new TerminalText();
  private readonly disposables: vscode.Disposable[] = [this.written];
  private readonly line = new Line();
  private alive: boolean;
  private lastSize = "";
  private readonly typing: Typing;
  /** Sizes follow one another, and wait for nothing that is typed. */
  private resizes: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly caisson: Caisson,
    private readonly outputs: Outputs,
    private readonly process: Process,
  ) {
    this.alive = isAlive(process);
    this.typing = new Typing({
      write: (text) => this.write(text),
      end: async () => (await this.ready()).request("process/closeStdin", idOf(process)),
      signal: (name) => caisson.processes.signal(process, name),
      note: (text) => this.note(text),
    });
  }

  open(size: vscode.TerminalDimensions | undefined): void {
    if (size !== undefined) {
      this.setDimensions(size);
    }
    this.start();
    this.disposables.push(
      this.caisson.service.onDidChange(({ is }) => {
        if (this.alive && (is === "waiting" || is === "failed")) {
          this.note("the service ended: output goes on when it is back");
        }
      }),
      // The service came back: what it kept is shown from the start. A session that was
      // merely used is told of as well.
      this.caisson.sessions.onDidOpen(({ session }) => {
        if (session.id === this.process.sessionId) {
          this.start();
        }
      }),
    );
  }

  /** The service, when the session of the process is open in it. */
  private ready(): Promise<Connection> {
    return this.caisson.sessions.ready();
  }

  private following: Following | undefined;
  /** Whether all output has been shown. */
  private whole = false;

  private start(): void {
    const connection = this.caisson.service.running;
    if (connection === undefined) {
      this.note("the service does not run");
      return;
    }
    if (this.whole || this.following?.goesOn(connection)) {
      return;
    }
    if (this.following !== undefined) {
      this.following.dispose();
      this.written.fire("\x1bc"); // what is shown comes again
      this.text = new TextDecoder("utf-8");
      this.screened = new TerminalText();
    }
    this.following = this.outputs.follow(connection, this.process, {
      data: (piece) => this.show(this.text.decode(piece, { stream: true })),
      lost: (count) => this.note(`${bytes(count)} of output are no longer kept`),
      end: (process) => {
        this.whole = true;
        this.show(this.text.decode());
        this.over();
        this.note(status(process));
      },
      failed: (error) => {
        const end = this.caisson.sessions.endOf(this.process.sessionId);
        if (end !== undefined) {
          this.over();
          this.note(`the session was ${end}`);
        } else if (!error.cancelled) {
          this.note(error.message);
        }
      },
    });
  }

  /** Nothing is typed for it any more. */
  private over(): void {
    this.alive = false;
    this.typing.dispose();
  }

  private show(output: string): void {
    const text = this.screened.pass(output);
    if (text !== "") {
      // A terminal of its own has made the line ends already.
      this.written.fire(this.process.tty ? text : text.replace(/\r?\n/g, "\r\n"));
    }
  }

  /** Says something that is not the process's. */
  private note(text: string): void {
    this.written.fire(note(text));
  }

  handleInput(keys: string): void {
    if (!this.alive) {
      return;
    }
    if (this.process.tty) {
      this.typing.keys(keys);
      return;
    }
    this.line.type(keys).forEach((edited) => {
      this.edited(edited);
    });
  }

  /** Shows and does what came of a key in a line that is edited here. */
  private edited({ echo, sent, asked }: Edited): void {
    this.written.fire(echo);
    if (sent !== undefined) {
      this.typing.text(sent);
    }
    if (asked === "interrupt") {
      this.typing.interrupt("SIGINT");
    } else if (asked === "end") {
      this.typing.end();
    }
  }

  private write(text: string): Writing {
    const cancelling = new vscode.CancellationTokenSource();
    const params = {
      ...idOf(this.process),
      data: Buffer.from(text).toString("base64"),
      encoding: "base64" as const,
    };
    const done = this.ready()
      .then((service) => service.request("process/write", params, { token: cancelling.token }))
      .finally(() => cancelling.dispose());
    return { done, cancel: () => cancelling.cancel() };
  }

  setDimensions({ columns, rows }: vscode.TerminalDimensions): void {
    const size = `${columns}x${rows}`;
    if (!this.process.tty || !this.alive || size === this.lastSize) {
      return;
    }
    this.lastSize = size;
    const params = { ...idOf(this.process), cols: columns, rows };
    this.resizes = this.resizes
      .then(async () => (await this.ready()).request("process/resize", params))
      .catch((thrown) => this.note(serviceError(thrown).message));
  }

  close(): void {
    this.typing.dispose();
    this.following?.dispose();
    for (const d of this.disposables) {
      d.dispose();
    }
  }
}
