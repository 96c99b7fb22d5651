import { describe, expect, it } from "vitest";
import { Told } from "../src/model/told.js";

interface Item {
  id: string;
  is: string;
}

const item = (id: string, is: string): Item => ({ id, is });

/** A question whose answer is given later. */
function question(told: Told<Item>) {
  let answer!: (items: Item[]) => void;
  const listed = told.list(
    () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  );
  return { answer, values: listed.then((items) => items && [...items.values()]) };
}

describe("Told", () => {
  const told = () => new Told<Item>(({ id }) => id);

  it("has in a list what was told while it was on its way, and not what was told before", async () => {
    const changes = told();
    changes.tell("a", item("a", "before"));
    const { answer, values } = question(changes);
    changes.tell("b", item("b", "told"));
    changes.tell("c", undefined);
    changes.tell("d", item("d", "new"));
    answer([item("a", "listed"), item("b", "listed"), item("c", "listed")]);
    expect(await values).toEqual([item("a", "listed"), item("b", "told"), item("d", "new")]);
  });

  it("gives no list that is older than the one before", async () => {
    const changes = told();
    const [first, second] = [question(changes), question(changes)];
    second.answer([item("a", "second")]);
    expect(await second.values).toEqual([item("a", "second")]);
    first.answer([item("a", "first")]);
    expect(await first.values).toBeUndefined();
    const third = question(changes);
    third.answer([]);
    expect(await third.values).toEqual([]);
  });

  it("fails as the question does, and takes the next one", async () => {
    const changes = told();
    await expect(changes.list(() => Promise.reject(new Error("gone")))).rejects.toThrow("gone");
    expect(await changes.list(async () => [])).toEqual(new Map());
  });
});
