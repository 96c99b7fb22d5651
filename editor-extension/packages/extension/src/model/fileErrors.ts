import type { ServiceError } from "../service/errors.js";

/** What an error says of a file: that it is not there, that it is not to be had, or nothing. */
export function fault(error: ServiceError, writes: boolean): "missing" | "refused" | "other" {
  switch (error.kind) {
    case "pathOutsideRoot":
    case "denied":
      return "refused";
    case undefined:
      // A path that leads to no such file. What is to be written need not be there, and a
      // service that is gone, or does not start, says nothing of files: an editor would
      // take one for deleted.
      return error.data.path === "path" && !writes ? "missing" : "other";
    default:
      return "other";
  }
}
