import type { GuardConfirmParams, GuardConfirmResult } from "@caisson/protocol";
import { describe, expect, it } from "vitest";
import { Questions } from "../src/model/questions.js";
import { eventually } from "./things.js";

/** A person who is asked and answers when the test says so. */
class Person {
  readonly asked: string[] = [];
  private answerNow: ((answer: GuardConfirmResult) => void) | undefined;
  readonly questions = new Questions((params) => {
    this.asked.push(String(params.arguments["command"]));
    return new Promise((resolve) => {
      this.answerNow = resolve;
    });
  });

  put(command: string, over: Partial<GuardConfirmParams> = {}, gone = () => false) {
    const params: GuardConfirmParams = {
      sessionId: "s1",
      callId: `c${Math.random()}`,
      tool: "bash",
      arguments: { command },
      reason: "A rule asks.",
      ...over,
    };
    return this.questions.put(params, gone);
  }

  async answer(answer: GuardConfirmResult): Promise<void> {
    await eventually(() => this.answerNow !== undefined);
    this.answerNow?.(answer);
    this.answerNow = undefined;
  }
}

const once: GuardConfirmResult = { decision: "allow" };
const always: GuardConfirmResult = { decision: "allow", remember: "session" };

describe("questions to a person", () => {
  it("come one at a time", async () => {
    const person = new Person();
    const answers = [person.put("a"), person.put("b")];
    await eventually(() => person.asked.length > 0);
    expect(person.asked).toEqual(["a"]);
    await person.answer(once);
    await person.answer({ decision: "deny" });
    expect(await Promise.all(answers)).toEqual([once, { decision: "deny" }]);
    expect(person.asked).toEqual(["a", "b"]);
  });

  it("are answered with one of their kind where that holds for the session", async () => {
    const person = new Person();
    const same = [person.put("make"), person.put("make"), person.put("make")];
    const others = [
      person.put("make install"),
      person.put("make", { reason: "A rule asks; it comes from a subagent." }),
      person.put("make", { sessionId: "s2" }),
      person.put("make", { tool: "git" }),
    ];
    await person.answer(always);
    expect(await Promise.all(same)).toEqual([always, always, always]);
    for (const _ of others) {
      await person.answer(once);
    }
    expect(await Promise.all(others)).toEqual(others.map(() => once));
    expect(person.asked).toEqual(["make", "make install", "make", "make", "make"]);
  });

  it("are each asked where the answer is for once", async () => {
    const person = new Person();
    const both = [person.put("make"), person.put("make")];
    await person.answer(once);
    await person.answer(once);
    await Promise.all(both);
    expect(person.asked).toEqual(["make", "make"]);
  });

  it("are each asked where nobody sees all of them", async () => {
    const person = new Person();
    const text = "a… [123 bytes cut] …b";
    const both = [person.put(text), person.put(text)];
    await person.answer(always);
    await person.answer(once);
    expect(await Promise.all(both)).toEqual([always, once]);
  });

  it("are not asked for anybody who has gone, and hold up nobody who fails", async () => {
    const person = new Person();
    let gone = false;
    const answers = [person.put("a"), person.put("b", {}, () => gone), person.put("c")];
    gone = true;
    await person.answer(once);
    await person.answer(once);
    expect(await Promise.all(answers)).toEqual([once, { decision: "deny" }, once]);
    expect(person.asked).toEqual(["a", "c"]);

    const failing = new Questions(() => Promise.reject(new Error("no window")));
    const params = { sessionId: "s1", callId: "c", tool: "bash", arguments: {}, reason: "" };
    await expect(failing.put(params, () => false)).rejects.toThrow("no window");
    await expect(failing.put(params, () => false)).rejects.toThrow("no window");
  });
});
