import { describe, expect, it } from "vitest";
import { dump } from "../src/model/hex.js";
import { age, asSentence, bytes, stateOf, status, wentWrong } from "../src/model/words.js";
import { process } from "./things.js";

describe("words", () => {
  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.0 KiB"],
    [10 * 1024, "10 KiB"],
    [1.5 * 1024 ** 3, "1.5 GiB"],
  ])("%d bytes are %s", (n, text) => {
    expect(bytes(n)).toBe(text);
  });

  it.each([
    [0, "0 s"],
    [59, "59 s"],
    [60, "1 min"],
    [3 * 3600, "3 h"],
    [2 * 86_400, "2 d"],
    [-5, "0 s"], // clocks differ
  ])("%d seconds are %s", (seconds, text) => {
    const from = "2026-01-01T00:00:00Z";
    expect(age(from, Date.parse(from) + seconds * 1000)).toBe(text);
  });

  it.each([
    [{ status: "running" as const }, "running", false],
    [{ status: "exited" as const, exitCode: 0 }, "exited", false],
    [{ status: "exited" as const, exitCode: 3 }, "exit code 3", true],
    [{ status: "exited" as const, signal: "SIGKILL" }, "ended by SIGKILL", true],
    [{ status: "exited" as const, signal: "SIGTERM", cause: "requested_stop" }, "stopped", false],
    [{ status: "exited" as const, exitCode: 1, cause: "natural_exit" }, "exit code 1", true],
    [{ status: "stopping" as const, cause: "requested_stop" }, "stopping", false],
    [{ status: "failed" as const, reason: "no such program" }, "failed: no such program", true],
    [{ status: "lost" as const }, "lost", true],
  ])("%o is told as %s", (over, text, wrong) => {
    expect(status(process("p", over))).toBe(text);
    expect(wentWrong(process("p", over))).toBe(wrong);
  });

  it.each([
    ["", ""],
    ["the image is not there", "The image is not there."],
    ["Is it there?", "Is it there?"],
  ])("%j as a sentence is %j", (text, sentence) => {
    expect(asSentence(text)).toBe(sentence);
  });

  it.each([
    ["bound", "running", "not started"],
    ["disconnected", "running", "not connected"],
    ["ready", "running", "ready"],
    ["ready", "waiting", "service down"],
    ["ready", "failed", "service down"],
    ["ready", "stopped", "service down"],
    ["ready", "starting", "service starting"],
  ] as const)("a session that is %s while the service is %s is %s", (state, service, text) => {
    expect(stateOf({ state }, service)).toBe(text);
  });

  it("tells who has a session that is open elsewhere, whatever was saved of it", () => {
    expect(stateOf({ state: "bound", heldBy: 42 }, "running")).toBe("in use by pid 42");
    expect(stateOf({ state: "bound", heldBy: 42 }, "failed")).toBe("service down");
  });

  it("dumps bytes", () => {
    expect(dump(new Uint8Array([0x41, 0x00, 0xff]))).toBe(
      `00000000  41 00 ff                 ${" ".repeat(23)}  |A..|\n`,
    );
    expect(dump(new Uint8Array(17)).split("\n")).toHaveLength(3);
    const all = Uint8Array.from({ length: 256 }, (_, i) => i);
    const lines = dump(all).split("\n");
    expect(lines[4]).toBe(
      "00000040  40 41 42 43 44 45 46 47  48 49 4a 4b 4c 4d 4e 4f  |@ABCDEFGHIJKLMNO|",
    );
    expect(lines[15]).toBe(
      `000000f0  f0 f1 f2 f3 f4 f5 f6 f7  f8 f9 fa fb fc fd fe ff  |${".".repeat(16)}|`,
    );
    expect(dump(new Uint8Array(0))).toBe("");
  });
});
