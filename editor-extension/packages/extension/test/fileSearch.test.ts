import { describe, expect, it } from "vitest";
import { type Entry, findFiles } from "../src/model/fileSearch.js";

/** A tree of some folders with a file each, and what a search is told of it. */
async function searched(
  tree: Record<string, Entry[]>,
  { wanted = () => true, now = () => 0 }: { wanted?: () => boolean; now?: () => number } = {},
) {
  const told: string[][] = [];
  const read: string[] = [];
  await findFiles({
    read: async (path) => {
      read.push(path);
      const entries = tree[path];
      if (entries === undefined) {
        throw new Error("it is not there any more");
      }
      return entries;
    },
    wanted,
    tell: (paths) => void told.push([...paths]),
    now,
  });
  return { told, read };
}

const file = (name: string): Entry => ({ name, is: "file" });
const folder = (name: string): Entry => ({ name, is: "folder" });

const folders = Array.from({ length: 500 }, (_, i) => `d${i}`);
const wide: Record<string, Entry[]> = {
  "": [file("top"), ...folders.map(folder)],
  ...Object.fromEntries(folders.map((name) => [name, [file("f")]])),
};

describe("findFiles", () => {
  it("finds the files of all folders, and goes neither by links nor where little is", async () => {
    const { told, read } = await searched({
      "": [folder("a"), folder(".git"), { name: "l", is: "link to a folder" }, folder("gone")],
      a: [file("1"), folder("b")],
      "a/b": [file("2")],
    });
    expect(told.at(-1)).toEqual(["a/1", "a/b/2"]);
    expect(read).toEqual(["", "a", "gone", "a/b"]);
  });

  it("tells of a large tree at once, from time to time, and at the end", async () => {
    const { told } = await searched(wide);
    expect(told.map((paths) => paths.length)).toEqual([1, 501]);
    let clock = 0;
    const slow = await searched(wide, { now: () => clock++ });
    expect(slow.told.map((paths) => paths.length)).toEqual([1, 201, 401, 501]);
  });

  it("ends when nobody waits for it any more", async () => {
    let looks = 3;
    const { told, read } = await searched(wide, { wanted: () => --looks > 0 });
    expect(read).toHaveLength(3);
    expect(told).toHaveLength(1);
  });

  it("leaves the rest of a tree that is too large", async () => {
    const many = Array.from({ length: 20_000 }, (_, i) => file(`f${i}`));
    const { told, read } = await searched({ "": [...many, folder("d")], d: [file("g")] });
    expect(read).toEqual([""]);
    expect(told.at(-1)).toHaveLength(20_000);
  });
});
