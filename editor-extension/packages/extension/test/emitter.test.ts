import { describe, expect, it } from "vitest";
import { Emitter } from "../src/service/emitter.js";

describe("Emitter", () => {
  it("tells the others, and whoever fires, nothing of a listener that throws", () => {
    const failures: unknown[] = [];
    const emitter = new Emitter<string>((thrown) => void failures.push(thrown));
    const heard: string[] = [];
    const wrong = new Error("a view is wrong");
    emitter.event(() => {
      throw wrong;
    });
    emitter.event((value) => void heard.push(value));
    emitter.fire("one");
    expect(heard).toEqual(["one"]);
    expect(failures).toEqual([wrong]);
  });
});
