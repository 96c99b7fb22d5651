import { expect, it } from "vitest";
import { eachOf } from "../src/model/eachOf.js";

it("does the work for a few at the same time, and gives all results in order", async () => {
  let now = 0;
  let most = 0;
  const items = Array.from({ length: 50 }, (_, i) => i);
  const results = await eachOf(items, 4, async (item) => {
    most = Math.max(most, ++now);
    for (let turns = item % 3; turns >= 0; turns--) {
      await Promise.resolve();
    }
    now--;
    return item * 2;
  });
  expect(results).toEqual(items.map((item) => item * 2));
  expect(most).toBe(4);
});

it("has nothing to do for nothing, and fails with the work", async () => {
  expect(await eachOf([], 4, async () => 1)).toEqual([]);
  const failing = eachOf([1, 2, 3], 2, async (item) => {
    if (item === 2) {
      throw new Error("two");
    }
  });
  await expect(failing).rejects.toThrow("two");
});
