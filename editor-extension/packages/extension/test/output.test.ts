import { describe, expect, it } from "vitest";
import { ResponseError } from "vscode-jsonrpc/node";
import { type Follower, Outputs } from "../src/model/output.js";
import { ServiceError } from "../src/service/errors.js";
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
  const outputs = new Outputs();
  const subscription = outputs.follow(connection, process("p1"), seen);
  const scripted = services[0];
  if (scripted === undefined) {
    throw new Error("no service was started");
  }
  await eventually(() => scripted.askedFor("process/subscribe").length === 1);
  return { service, connection, scripted, outputs, seen, subscription };
}

describe("Outputs", () => {
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
    const error = {
      kind: "backendUnavailable" as const,
      message: "the host is gone",
      hint: "Look at it.",
    };
    scripted.notify("process/output", { ...at, offset: 0, error });
    await eventually(() => seen.error !== undefined);
    expect(seen.error).toBeInstanceOf(ServiceError);
    expect(seen.error).toMatchObject({ ...error, cancelled: false });
    await service.stop();
  });

  it("says of an end that somebody wanted that it was cancelled", async () => {
    const { service, scripted, seen } = await following({});
    const error = { kind: "cancelled" as const, message: "the session was closed" };
    scripted.notify("process/output", { ...at, offset: 0, error });
    await eventually(() => seen.error !== undefined);
    expect(seen.error?.cancelled).toBe(true);
    await service.stop();
  });

  it("ends the subscription also when a read of its own failed", async () => {
    const { service, scripted, seen } = await following({
      "process/read": () => {
        throw new ResponseError(-32000, "the read failed", { kind: "internal", retryable: false });
      },
    });
    scripted.notify("process/output", { ...at, offset: 0, gap: true, nextOffset: 10 });
    await eventually(() => seen.error !== undefined);
    expect(seen.error).toMatchObject({ message: "the read failed", kind: "internal" });
    await eventually(() => scripted.askedFor("process/unsubscribe").length === 1);
    await service.stop();
  });

  it("leaves the output of each process to those who follow that one", async () => {
    const { service, connection, scripted, outputs, seen } = await following({
      "process/subscribe": ({ processId }) => ({ offset: 0, process: process(processId) }),
      "process/get": ({ processId }) => ({ process: process(processId, { status: "exited" }) }),
    });
    const other = new Seen();
    outputs.follow(connection, process("p2"), other);
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

  it("looks again only when the service has let go of the look before", async () => {
    const gates: (() => void)[] = [];
    const gate = () => new Promise<void>((resolve) => void gates.push(resolve));
    const { service, connection, scripted, outputs, seen, subscription } = await following({
      "process/subscribe": async () => {
        await gate();
        return { offset: 0, process: process("p1") };
      },
      "process/unsubscribe": async () => {
        await gate();
        return {};
      },
    });
    const asked = () =>
      scripted.heard.map((h) => h.method).filter((method) => method.startsWith("process/"));
    const pass = async (count: number) => {
      await eventually(() => gates.length === count);
      // Whatever else would be asked at the same time is there by then.
      await connection.request("$/nothing" as never, {} as never).catch(() => undefined);
    };
    expect(subscription.goesOn(connection)).toBe(true);
    subscription.dispose();
    expect(subscription.goesOn(connection)).toBe(false);
    const again = new Seen();
    const second = outputs.follow(connection, process("p1"), again);
    await pass(1);
    expect(asked()).toEqual(["process/subscribe"]);
    gates[0]?.();
    await pass(2);
    expect(asked()).toEqual(["process/subscribe", "process/unsubscribe"]);
    // The last pieces of the look before are none of the next one's.
    scripted.notify("process/output", { ...at, offset: 50, data: base64("old") });
    gates[1]?.();
    await pass(3);
    expect(asked().at(-1)).toBe("process/subscribe");
    gates[2]?.();
    scripted.notify("process/output", { ...at, offset: 0, data: base64("all of it") });
    await eventually(() => again.text !== "");
    expect([seen.text, again.text]).toEqual(["", "all of it"]);
    expect(second.goesOn(connection)).toBe(true);
    await service.stop();
  });
});
