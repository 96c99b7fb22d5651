import { describe, expect, it } from "vitest";
import { Decisions } from "../src/model/decisions.js";

const input = { command: "make" };

describe("Decisions", () => {
  it("gives the session that was shown for the call, once", () => {
    const decisions = new Decisions();
    decisions.shown("bash", input, "s1");
    decisions.shown("bash", { command: "ls" }, "s2");
    expect(decisions.take("bash", structuredClone(input))).toBe("s1");
    expect(decisions.take("bash", input)).toBeUndefined();
    expect(decisions.take("git", { command: "ls" })).toBeUndefined();
    expect(decisions.take("bash", { command: "ls" })).toBe("s2");
  });

  it("decides nothing where equal calls were shown for different sessions", () => {
    const decisions = new Decisions();
    decisions.shown("bash", input, "s1");
    decisions.shown("bash", input, "s2");
    expect(decisions.take("bash", input)).toBeUndefined();
    // What was in doubt is over: the next question counts.
    decisions.shown("bash", input, "s2");
    expect(decisions.take("bash", input)).toBe("s2");
  });

  it("forgets the questions that led to no call", () => {
    const decisions = new Decisions();
    for (let n = 0; n <= 1_000; n++) {
      decisions.shown("bash", { n }, "s1");
    }
    expect(decisions.take("bash", { n: 0 })).toBeUndefined();
    expect(decisions.take("bash", { n: 1 })).toBe("s1");
  });
});
