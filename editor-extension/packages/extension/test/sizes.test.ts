import { describe, expect, it } from "vitest";
import { maxCompared, maxWhole, tooLargeToCompare, tooLargeToShow } from "../src/model/sizes.js";

describe("what is too large", () => {
  it("is told with what to do instead", () => {
    expect(tooLargeToShow("a.log", maxWhole, "save it")).toBe("");
    expect(tooLargeToShow("a.log", 256 << 20, "save it")).toBe(
      "a.log has 256 MiB, and at most 64 MiB are shown whole: save it.",
    );
  });

  it("is not compared", () => {
    const file = (name: string, size: number) => ({ name, size });
    expect(tooLargeToCompare([file("a", maxCompared), file("b", 0)])).toBe("");
    expect(tooLargeToCompare([file("a", maxCompared + 1), file("b", 0)])).toMatch(
      /^Too large to compare: a \(16 MiB\)\. At most 16 MiB/,
    );
    expect(tooLargeToCompare([file("a", 256 << 20), file("a", 256 << 20)])).toMatch(
      /^Too large to compare: a \(256 MiB\)\. /,
    );
    expect(tooLargeToCompare([file("a", 256 << 20), file("b\u202e", 20 << 20)])).toMatch(
      /: a \(256 MiB\) and b\\u\{202e\} \(20 MiB\)\. .*save both/,
    );
  });
});
