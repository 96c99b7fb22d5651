import { describe, expect, it } from "vitest";
import { type Follower, follow } from "../src/model/output.js";
import type { ServiceError } from "../src/service/errors.js";
import type { Script } from "./scripted.js";
import { eventually, process, testService } from "./things.js";

/** What came, as a person would see it. */
class Seen implements Follower {
  text = "";
  over = false;
  error: ServiceError | undefined;

  data(bytes: Uint8Array): void {
    this.text += Buffer.from(bytes).toString();
  }

  lost(bytes: number): void {
    this.text += `[${bytes} lost]`;
  }

  end(): void {
    this.over = true;
  }

  failed(error: ServiceError): void {
    this.error = error;
  }
}

const base64 = (text: string) => Buffer.from(text).toString("base64");
const at = { sessionId: "s1", processId: "p1" };

async function following(script: Script) {
  const { service, services } = testService([
    {
      "process/subscribe": () => ({ offset: 0, process: process("p1") }),
      "process/unsubscribe": () => ({}),
      "process/get": () => ({ process: process("p1", { status: "exited", exitCode: 0 }) }),
      ...script,
    },
  ]);
  const connection = await service.ensure();
  const seen = new Seen();
  const subscription = follow(connection, process("p1"), seen);
  const scripted = services[0];
  if (scripted === undefined) {
    throw new Error("no service was started");
  }
  await eventually(() => scripted.askedFor("process/subscribe").length === 1);
  return { service, scripted, seen, subscription };
}

describe("follow", () => {
  it("hands on what comes, to the end", async () => {
    const { service, scripted, seen } = await following({});
    scripted.notify("process/output", { ...at, offset: 0, data: base64("one ") });
    scripted.notify("process/output", { ...at, offset: 4, data: base64("two") });
    scripted.notify("process/output", { ...at, processId: "p2", offset: 0, data: base64("no") });
    scripted.notify("process/output", { ...at, offset: 7, eof: true });
    await eventually(() => seen.over);
    expect(seen.text).toBe("one two");
    await service.stop();
  });

  it("goes on with a process that closed its output until it ends", async () => {
    const { service, scripted, seen } = await following({
      "process/get": () => ({ process: process("p1") }),
      "process/wait": () => {
        const ended = scripted.askedFor("process/wait").length > 1;
        seen.text += seen.over ? "late" : ".";
        return ended
          ? { process: process("p1", { status: "exited", exitCode: 0 }), timedOut: false }
          : { process: process("p1"), timedOut: true };
      },
    });
    scripted.notify("process/output", { ...at, offset: 0, eof: true });
    await eventually(() => seen.over);
    expect(seen.text).toBe("..");
    await service.stop();
  });

  it("reads what a gap left out before what follows it", async () => {
    const { service, scripted, seen } = await following({
      "process/read": ({ offset = 0 }) => {
        // A page ends where the service likes.
        const all = "0123456789";
        const end = Math.min(offset + 4, all.length);
        return {
          data: base64(all.slice(offset, end)),
          encoding: "base64",
          startOffset: offset,
          endOffset: end,
          totalBytes: 12,
          truncated: false,
          timedOut: false,
          eof: false,
          process: process("p1"),
        };
      },
    });
    scripted.notify("process/output", { ...at, offset: 0, gap: true, nextOffset: 10 });
    scripted.notify("process/output", { ...at, offset: 10, data: base64("ab") });
    scripted.notify("process/output", { ...at, offset: 12, eof: true });
    await eventually(() => seen.over);
    expect(seen.text).toBe("0123456789ab");
    await service.stop();
  });

  it("says what is kept no longer", async () => {
    const { service, scripted, seen } = await following({
      "process/subscribe": () => ({ offset: 100, process: process("p1") }),
    });
    scripted.notify("process/output", { ...at, offset: 100, data: base64("late") });
    scripted.notify("process/output", { ...at, offset: 104, eof: true });
    await eventually(() => seen.over);
    expect(seen.text).toBe("[100 lost]late");
    await service.stop();
  });

  it("tells why it ended early", async () => {
    const { service, scripted, seen } = await following({});
    const error = { kind: "backendUnavailable" as const, message: "the host is gone" };
    scripted.notify("process/output", { ...at, offset: 0, error });
    await eventually(() => seen.error !== undefined);
    expect(seen.error?.message).toBe("the host is gone");
    await service.stop();
  });

  it("leaves the output of each process to those who follow that one", async () => {
    const { service, scripted, seen } = await following({
      "process/subscribe": ({ processId }) => ({ offset: 0, process: process(processId) }),
      "process/get": ({ processId }) => ({ process: process(processId, { status: "exited" }) }),
    });
    const other = new Seen();
    follow(await service.ensure(), process("p2"), other);
    await eventually(() => scripted.askedFor("process/subscribe").length === 2);
    const piece = (processId: string, text: string) =>
      scripted.notify("process/output", { ...at, processId, offset: 0, data: base64(text) });
    piece("p1", "one");
    piece("p2", "two!");
    scripted.notify("process/output", { ...at, processId: "p2", offset: 4, eof: true });
    await eventually(() => other.over);
    // Nor does the end of one following end the other.
    scripted.notify("process/output", { ...at, offset: 3, eof: true });
    await eventually(() => seen.over);
    expect([seen.text, other.text]).toEqual(["one", "two!"]);
    await service.stop();
  });

  it("ends the subscription when nobody looks any more", async () => {
    const { service, scripted, seen, subscription } = await following({});
    subscription.dispose();
    await eventually(() => scripted.askedFor("process/unsubscribe").length === 1);
    scripted.notify("process/output", { ...at, offset: 0, data: base64("unseen") });
    await service.stop();
    expect(seen.text).toBe("");
  });
});
