import { fromPath } from "./shown.js";

/** How the service begins a path that is no UTF-8, whose bytes are percent-coded then. */
const coded = "bytes:";

/**
 * The service's path of a file whose names stand in a uri as inPath made them of what the
 * service listed. Each name was listed coded or not; a path is one or the other.
 */
export function servicePath(path: string): string {
  const names = path.split("/").map(fromPath);
  if (!names.some((name) => name.startsWith(coded))) {
    return names.join("/");
  }
  const parts = names.map((name) =>
    name.startsWith(coded) ? name.slice(coded.length) : encodeURIComponent(name),
  );
  return coded + parts.join("/");
}
