import type { ExecFileException } from "node:child_process";
import { describe, expect, it } from "vitest";
import { doctorReport } from "../src/model/doctor.js";

const failure = (over: Partial<ExecFileException>): ExecFileException =>
  Object.assign(new Error("Command failed"), over);

describe("doctorReport", () => {
  it("is what the doctor said, whatever it found", () => {
    expect(doctorReport(null, "all well\n", "")).toBe("all well\n");
    const found = failure({ code: 1, killed: false });
    expect(doctorReport(found, "one problem\n", "and a warning\n")).toBe(
      "one problem\nand a warning\n",
    );
  });

  it("says that the doctor was ended before its end", () => {
    const late = failure({ code: null as never, signal: "SIGTERM", killed: true });
    expect(doctorReport(late, "local: fine\n", "")).toBe(
      "local: fine\n\nThe rest of the report is missing: the doctor was ended after 90 s.\n",
    );
    expect(() => doctorReport(late, "", "")).toThrow("ended after 90 s");
    const foreign = failure({ code: null as never, signal: "SIGKILL", killed: false });
    expect(doctorReport(foreign, "local: fine\n", "")).toBe(
      "local: fine\n\nThe rest of the report is missing: the doctor was ended by SIGKILL.\n",
    );
    expect(() => doctorReport(foreign, "", "")).toThrow("ended by SIGKILL");
    const long = failure({ code: "ERR_CHILD_PROCESS_STDIO_MAXBUFFER" });
    expect(doctorReport(long, "local: fine\n", "")).toContain("is missing: Command failed.");
  });

  it("says why the doctor could not be run", () => {
    expect(() => doctorReport(failure({ code: 2 }), "", "no such flag")).toThrow("no such flag");
    expect(() => doctorReport(failure({ code: 126 }), "", "")).toThrow("Command failed");
  });
});
