import { describe, expect, it } from "vitest";
import { fault } from "../src/model/fileErrors.js";
import { ServiceError } from "../src/service/errors.js";

describe("an error of a file", () => {
  it.each([
    [{ path: "path", retryable: false }, false, "missing"],
    [{ path: "path", retryable: false }, true, "other"], // a directory stands there
    [{ kind: "pathOutsideRoot" as const, path: "path" }, false, "refused"],
    [{ kind: "denied" as const }, true, "refused"],
    [{ kind: "backendUnavailable" as const }, false, "other"],
    [{ hint: "Look into the log.", outcomeUnknown: true }, false, "other"], // the service is gone
    [{}, false, "other"],
  ])("with %j, for a write: %s,, is %s", (data, writes, means) => {
    expect(fault(new ServiceError("It failed.", data), writes)).toBe(means);
  });
});
