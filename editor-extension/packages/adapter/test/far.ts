import { PassThrough } from "node:stream";
import { vi } from "vitest";
import type { DelegateOptions } from "../src/index.js";
import { type Got, Host } from "./host.js";

/** The far end of a delegate, scripted frame by frame. */
export class Far {
  readonly input = new PassThrough();
  readonly output = new PassThrough();
  /** All that it was sent. */
  readonly heard: Buffer[] = [];
  readonly close = vi.fn(() => {
    this.output.end();
  });
  readonly host = new Host(this.output, this.input, Promise.resolve(undefined));
  #answered = 0;

  constructor() {
    this.input.on("data", (piece: Buffer) => this.heard.push(piece));
  }

  get options(): DelegateOptions {
    const { input, output, close } = this;
    return { input, output, close };
  }

  /** Waits for the next request with the method. */
  async asked(method: string): Promise<Got> {
    const got = await this.host.next(
      (f) => f.method === method && this.host.frames.indexOf(f) >= this.#answered,
      method,
    );
    this.#answered = this.host.frames.indexOf(got) + 1;
    return got;
  }

  /** Answers the next request with the method. */
  async answer(method: string, data: unknown): Promise<void> {
    const { id } = await this.asked(method);
    this.host.line(JSON.stringify({ id, data }));
  }
}
