import type { Message } from "vscode-jsonrpc";
import { bytes } from "../model/words.js";
import { ServiceError } from "./errors.js";

/**
 * Makes the bytes of messages. One that the service would drop, as it is too long, gets no
 * answer that says whose it is: whoever sent it would wait for ever. It is not sent.
 */
export class Encoder {
  readonly name = "application/json";
  /** The longest message that the service takes, in bytes. */
  longest = Number.POSITIVE_INFINITY;
  /** Why the last one that was not sent was not. */
  private refusal: ServiceError | undefined;

  async encode(message: Message): Promise<Uint8Array> {
    let content: Buffer;
    try {
      content = Buffer.from(JSON.stringify(message));
    } catch (thrown) {
      throw this.refuse("What was given cannot be written as JSON", thrown);
    }
    if (content.length > this.longest) {
      const [given, most] = [content.length, this.longest].map(bytes);
      throw this.refuse(`The message has ${given}, and the service takes at most ${most}`);
    }
    return content;
  }

  /** The error of that message, if it is one of these. */
  refused(message: string): ServiceError | undefined {
    return this.refusal?.message === message ? this.refusal : undefined;
  }

  private refuse(what: string, cause?: unknown): ServiceError {
    const why = cause instanceof Error ? `: ${cause.message.split("\n", 1)[0]}` : "";
    this.refusal = new ServiceError(
      `${what}${why}. Nothing was done.`,
      cause === undefined ? { hint: "Give less at once." } : {},
      { cause },
    );
    return this.refusal;
  }
}
