import { visible } from "./shown.js";

/**
 * The commands to a terminal that change nothing but this terminal: its title, its
 * colours, and links in its text. Others reach what is not the process's: the clipboard
 * is read and written by 52, and the editor takes what 7, 9, 133, 633 and 1337 tell for
 * commands and folders of the person, who gets them offered again.
 */
const harmless = new Set(["0", "1", "2", "4", "8", "10", "11", "12", "104", "110", "111", "112"]);

/** More digits has no number of a command, leading zeros included. */
const maxDigits = 16;

const esc = "\x1b";
/** The start of a command as one character, for ESC ]. */
const command = "\x9d";
/** What ends a command and belongs to it: BEL, CAN, SUB and ST. */
const ends = new Set(["\x07", "\x18", "\x1a", "\x9c"]);

/**
 * A line that is not the process's. Others may have put words into it, an error's or
 * the reason of an end, and these command nothing.
 */
export function note(text: string): string {
  return `\r\n${esc}[2m[${visible(text).replaceAll("\n", "\r\n")}]${esc}[0m\r\n`;
}

/**
 * A process's output as a terminal of the editor may have it: commands that would reach
 * beyond the terminal are left out, however the output is cut into pieces.
 */
export class TerminalText {
  private state: "text" | "escape" | "number" | "dropped" = "text";
  /** What has begun and may become a command. */
  private held = "";
  private digits = "";

  /** Gives what of the next piece may be shown. */
  pass(piece: string): string {
    let shown = "";
    let from = 0;
    for (let i = 0; i < piece.length; i++) {
      const code = piece.charCodeAt(i);
      // Most of it is plain text, which is not touched character by character.
      if (this.state !== "text" || code === 0x1b || code === 0x9d) {
        shown += piece.slice(from, i) + this.take(piece.charAt(i));
        from = i + 1;
      }
    }
    return shown + piece.slice(from);
  }

  /** Takes the next character; gives what is shown because of it. */
  private take(c: string): string {
    switch (this.state) {
      case "text":
        if (c !== esc && c !== command) {
          return c;
        }
        this.held = c;
        this.digits = "";
        this.state = c === esc ? "escape" : "number";
        return "";
      case "escape":
        if (c === "]") {
          this.held += c;
          this.state = "number";
          return "";
        }
        // It does what it does elsewhere, and the escape goes on.
        return isIgnored(c) ? c : this.leave(this.held) + this.take(c);
      case "number":
        return this.number(c);
      case "dropped":
        if (!isEnd(c)) {
          return "";
        }
        this.state = "text";
        return ends.has(c) ? "" : this.take(c);
    }
  }

  private number(c: string): string {
    if (c >= "0" && c <= "9" && this.digits.length < maxDigits) {
      this.digits += c;
      return "";
    }
    if (isIgnored(c) && !ends.has(c)) {
      return "";
    }
    const over = c === ";" || isEnd(c);
    if (over && harmless.has(this.digits.replace(/^0+(?=.)/, ""))) {
      return this.leave(this.held + this.digits) + this.take(c);
    }
    this.state = "dropped";
    return isEnd(c) ? this.take(c) : "";
  }

  private leave(shown: string): string {
    this.state = "text";
    return shown;
  }
}

/** Whether a terminal goes on with what has begun as if the character were not there. */
function isIgnored(c: string): boolean {
  return (c < " " && c !== esc && c !== "\x18" && c !== "\x1a") || c === "\x7f";
}

/** Whether a command is over with it, or before it. */
function isEnd(c: string): boolean {
  return ends.has(c) || c === esc || (c >= "\x80" && c <= "\x9f");
}
