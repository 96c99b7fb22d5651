import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { commonArguments, locate, serviceArguments } from "../src/service/locate.js";

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "caisson-locate-"));
});

afterEach(async () => {
  await rm(root, { recursive: true });
});

async function program(...path: string[]): Promise<string> {
  const file = join(root, ...path);
  await mkdir(join(file, ".."), { recursive: true });
  await writeFile(file, "");
  await chmod(file, 0o755);
  return file;
}

const find = (configured: unknown = "", path: string[] = []) =>
  locate({
    configured,
    extension: join(root, "extension"),
    environment: { PATH: path.map((p) => (p === "." ? p : join(root, p))).join(delimiter) },
    platform: "linux",
  });

describe("locate", () => {
  it("prefers the setting, then the extension's own, then the PATH", async () => {
    const onPath = await program("path", "caisson");
    expect(await find("", ["path"])).toEqual({ path: onPath, from: "PATH" });
    const own = await program("extension", "bin", "caisson");
    expect(await find("", ["path"])).toEqual({ path: own, from: "extension" });
    const set = await program("elsewhere", "caisson-dev");
    expect(await find(set, ["path"])).toEqual({ path: set, from: "setting" });
  });

  it("takes nothing in the place of a setting that is wrong", async () => {
    await program("extension", "bin", "caisson");
    await expect(find(join(root, "missing"))).rejects.toThrow(/caisson\.path.*not a program/);
    await expect(find("caisson")).rejects.toThrow(/absolute path/);
    await expect(find(7)).rejects.toThrow(/absolute path/);
  });

  it("takes a setting that is null for none", async () => {
    const own = await program("extension", "bin", "caisson");
    expect(await find(null)).toEqual({ path: own, from: "extension" });
  });

  it("passes by what cannot be run, and the current folder", async () => {
    await writeFile(await program("first", "caisson"), "");
    await chmod(join(root, "first", "caisson"), 0o644);
    await mkdir(join(root, "second", "caisson"), { recursive: true });
    await expect(find("", [".", "first", "second"])).rejects.toMatchObject({
      hint: expect.stringContaining("caisson.path"),
    });
  });
});

describe("serviceArguments", () => {
  it.each([
    [undefined, []],
    [null, []],
    [
      ["--log-level", "debug"],
      ["--log-level", "debug"],
    ],
  ])("makes of %j %j", (setting, list) => {
    expect(serviceArguments(setting)).toEqual(list);
  });

  it.each(["--log-level debug", [1], { 0: "a" }])("takes no %j", (setting) => {
    expect(() => serviceArguments(setting)).toThrow(/caisson\.serviceArguments must be a list/);
  });
});

it.each([
  [undefined, []],
  ["--config x", []],
  [
    ["--event-log", "l", "--config", "/c.json", "--log-level=debug"],
    ["--config", "/c.json", "--log-level=debug"],
  ],
  [["--state-dir"], ["--state-dir"]],
])("of the service's arguments %j another command gets %j", (configured, expected) => {
  expect(commonArguments(configured)).toEqual(expected);
});
