import { isAbsolute, posix } from "node:path";
import { AdapterError, isObject } from "./errors.js";
import type { RawJSON } from "./json.js";
import { VERSION } from "./limits.js";
import type { Initialize } from "./types/initialize.js";

/** Reads and checks the data of `initialize`; unknown members stay in it. */
export function readBinding(data: RawJSON | undefined): Initialize {
  const in_ = data?.parse();
  if (!isObject(in_)) throw invalid("data", "initialize without data");
  const { version, root, session, identity } = in_;
  if (version !== VERSION) {
    throw new AdapterError(
      "protocolMismatch",
      `the host speaks protocol ${JSON.stringify(version)}; this adapter speaks ${VERSION}`,
      { hint: "use a service and an adapter kit of the same protocol version" },
    );
  }
  if (typeof root !== "string" || !isRoot(root))
    throw invalid("root", "the root is not an absolute path");
  if (!isComponent(session)) throw invalid("session", "the session is not one path component");
  if (identity !== undefined && identity !== null && identity !== "" && !isComponent(identity)) {
    throw invalid("identity", "the identity is not one path component");
  }
  if (!isVariables(in_["environment"])) {
    throw invalid("environment", "the environment is not a map of strings");
  }
  if (!isStrings(in_["capabilities"])) {
    throw invalid("capabilities", "the capabilities are not a list of strings");
  }
  for (const name of ["require_existing_workspace", "remove_workspace_on_exit"]) {
    const value = in_[name];
    if (value !== undefined && value !== null && typeof value !== "boolean") {
      throw invalid(name, `${name} is neither true nor false`);
    }
  }
  const known = Object.fromEntries(Object.entries(in_).filter(([, value]) => value !== null));
  return { ...known, version, root, session: String(session) };
}

/** Throws unless the repeated binding is the accepted one. */
export function checkSame(accepted: Initialize, again: Initialize): void {
  const differs = [
    ["root", accepted.root !== again.root],
    ["session", accepted.session !== again.session],
    ["identity", (accepted.identity ?? "") !== (again.identity ?? "")],
    ["environment", !sameVariables(accepted.environment, again.environment)],
    // A host that comes back requires what it once had, so it may grow stricter.
    [
      "require_existing_workspace",
      accepted.require_existing_workspace === true && again.require_existing_workspace !== true,
    ],
    [
      "remove_workspace_on_exit",
      (accepted.remove_workspace_on_exit ?? false) !== (again.remove_workspace_on_exit ?? false),
    ],
  ] as const;
  for (const [member, different] of differs) {
    if (!different) continue;
    throw new AdapterError(
      "denied",
      `the adapter is bound to another ${member}, and a binding never changes`,
      { path: member },
    );
  }
}

/** Whether the path can be a workspace's. */
export function isRoot(path: string): boolean {
  return (posix.isAbsolute(path) || isAbsolute(path)) && !path.includes("\0");
}

/** Leaving the environment out means "as first given". */
function sameVariables(
  accepted: Initialize["environment"],
  again: Initialize["environment"],
): boolean {
  if (again === undefined) return true;
  const first = accepted ?? {};
  const names = Object.keys(again);
  return (
    names.length === Object.keys(first).length &&
    names.every((name) => Object.hasOwn(first, name) && first[name] === again[name])
  );
}

function isComponent(value: unknown): boolean {
  return (
    typeof value === "string" &&
    value !== "" &&
    value !== "." &&
    value !== ".." &&
    Buffer.byteLength(value) <= 255 &&
    !/[/\\\0]/.test(value)
  );
}

function isVariables(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return isObject(value) && Object.values(value).every((v) => typeof v === "string");
}

function isStrings(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return Array.isArray(value) && value.every((v) => typeof v === "string");
}

function invalid(path: string, message: string): AdapterError {
  return new AdapterError("invalidParams", message, { path });
}
