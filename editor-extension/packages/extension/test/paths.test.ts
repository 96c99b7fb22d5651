import { expect, it } from "vitest";
import { servicePath } from "../src/model/paths.js";

it.each([
  ["", ""],
  ["a/per%20cent/q?", "a/per%20cent/q?"],
  ["a/bi\\u{202e}di", "a/bi\u202edi"],
  ["bytes:caf%E9", "bytes:caf%E9"],
  ["bytes:d%FF/in ner/bytes:caf%E9", "bytes:d%FF/in%20ner/caf%E9"],
  ["per%20cent/bytes:bytes%3A", "bytes:per%2520cent/bytes%3A"],
])("the path %j of a uri is the service's %j", (path, expected) => {
  expect(servicePath(path)).toBe(expected);
});
