import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { soon } from "../src/model/patience.js";
import { Emitter } from "../src/service/emitter.js";

describe("soon", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("gives at once what is there", async () => {
    const changes = new Emitter<void>();
    expect(await soon(() => "folder", changes.event, 1_000)).toBe("folder");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("waits for what comes with a change", async () => {
    const changes = new Emitter<void>();
    let folder: string | undefined;
    const found = soon(() => folder, changes.event, 1_000);
    changes.fire(); // of something else
    folder = "folder";
    changes.fire();
    expect(await found).toBe("folder");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("waits no longer than it may", async () => {
    const changes = new Emitter<void>();
    const found = soon(() => undefined, changes.event, 1_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await found).toBeUndefined();
  });
});
