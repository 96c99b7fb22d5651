/** What a key did to a line that is edited on this side. */
export interface Edited {
  /** What the terminal shows of it. */
  echo: string;
  /** A line that is ready to be sent. */
  sent?: string;
  /** A request of the keyboard that is no text. */
  asked?: "interrupt" | "end";
}

/**
 * What follows the escape of what is no text: of an answer of the terminal to the process,
 * such as its colours; of a key, such as an arrow; of a paste's marks.
 */
const sequence = /^(?:[\]P][ -~]*[^ -~\r]\\?|[[O][0-9;?]*[ -/]*[@-~]|[ -~])?/;

/** A character that a terminal gives two columns: ideographs, Hangul, full-width forms, emoji. */
export const wide =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;

/** A character that stands on the one before it. */
const narrow = /[\p{Mn}\p{Me}\p{Cf}]/u;

/** What takes a character from the screen again. */
function erasing(character: string): string {
  return narrow.test(character) ? "" : "\b \b".repeat(wide.test(character) ? 2 : 1);
}

/** A line as it is typed for a process that has no terminal of its own. */
export class Line {
  private text: string[] = [];

  /** Takes what the keyboard, or a paste, gave; gives what came of it, key by key. */
  type(keys: string): Edited[] {
    const done: Edited[] = [];
    let rest = keys.replace(/\r\n|\n/g, "\r");
    while (rest !== "") {
      const key = String.fromCodePoint(rest.codePointAt(0) ?? 0);
      rest = rest.slice(key.length);
      if (key === "\x1b") {
        rest = rest.replace(sequence, "");
        continue;
      }
      const edited = this.key(key);
      if (edited !== undefined) {
        done.push(edited);
      }
    }
    return done;
  }

  private key(key: string): Edited | undefined {
    switch (key) {
      case "\r":
        return { echo: "\r\n", sent: `${this.take()}\n` };
      case "\x7f":
      case "\b":
        return this.erase();
      case "\x15": {
        const echo = this.text.map(erasing).join("");
        this.text = [];
        return { echo };
      }
      case "\x03":
        this.text = [];
        return { echo: "^C\r\n", asked: "interrupt" };
      case "\x04":
        // As a terminal has it: what is typed goes out first, and only then the end.
        return this.text.length > 0 ? { echo: "", sent: this.take() } : { echo: "", asked: "end" };
      default:
        if (key < " " && key !== "\t") {
          return undefined;
        }
        this.text.push(key);
        return { echo: key };
    }
  }

  private erase(): Edited | undefined {
    const character = this.text.pop();
    return character === undefined ? undefined : { echo: erasing(character) };
  }

  private take(): string {
    const line = this.text.join("");
    this.text = [];
    return line;
  }
}
