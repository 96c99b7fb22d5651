import { MAX_MESSAGE } from "./limits.js";

const kinds = [
  "sessionNotFound",
  "sessionBusy",
  "profileNotFound",
  "configInvalid",
  "backendUnavailable",
  "protocolMismatch",
  "environmentLost",
  "outcomeUnknown",
  "toolNotFound",
  "unsupported",
  "denied",
  "rateLimited",
  "budgetExhausted",
  "timeout",
  "artifactTooLarge",
  "artifactNotFound",
  "processNotFound",
  "pathOutsideRoot",
  "overloaded",
  "cancelled",
  "guestFailed",
  "internal",
  "invalidParams",
] as const;

/** What an error means for whoever has to act on it; the words are those of the editor protocol. */
export type ErrorKind = (typeof kinds)[number];

/** The member `detail` of an error frame (`caisson.errors.v1`). */
export interface ErrorDetail {
  readonly kind: ErrorKind;
  /** What to do next. */
  readonly hint?: string;
  /** The file, or the member of a request, that the error is about. */
  readonly path?: string;
  /** The same call may succeed later and did nothing now. */
  readonly retryable?: boolean;
}

/**
 * An error that keeps its kind on its way to the editor. Any other error that a
 * handler throws arrives as `internal`, or as `cancelled` when it is an abort.
 */
export class AdapterError extends Error {
  override readonly name = "AdapterError";
  readonly kind: ErrorKind;
  readonly hint: string;
  readonly path: string;
  readonly retryable: boolean;

  /** The message is one sentence that says what happened and where. */
  constructor(
    kind: ErrorKind,
    message: string,
    more: Omit<ErrorDetail, "kind"> & { readonly cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.kind = kind;
    this.hint = more.hint ?? "";
    this.path = more.path ?? "";
    this.retryable = more.retryable ?? false;
  }
}

/** A line that is no frame, or a frame that breaks a limit: the end of its connection. */
export class FrameError extends Error {
  override readonly name = "FrameError";
}

/** The text of anything that was thrown; never empty, since an empty error is none. */
export function messageOf(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return message === "" ? "failed without saying why" : message;
}

/** The detail that travels beside the text of anything that was thrown. */
export function detailOf(thrown: unknown): ErrorDetail {
  if (thrown instanceof AdapterError) {
    return {
      kind: thrown.kind,
      ...(thrown.hint !== "" && { hint: thrown.hint }),
      ...(thrown.path !== "" && { path: thrown.path }),
      ...(thrown.retryable && { retryable: true }),
    };
  }
  if (thrown instanceof Error && thrown.name === "AbortError") return { kind: "cancelled" };
  if (thrown instanceof Error && thrown.name === "TimeoutError") return { kind: "timeout" };
  return { kind: "internal" };
}

/** The error that a peer sent, with its texts bounded. A kind that is unknown is `internal`. */
export function peerError(message: string, detail: unknown): AdapterError {
  const d = isObject(detail) ? detail : {};
  const text = (value: unknown): string => (typeof value === "string" ? clip(value) : "");
  const kind = text(d["kind"]);
  return new AdapterError(isKind(kind) ? kind : "internal", clip(message), {
    hint: text(d["hint"]),
    path: text(d["path"]),
    retryable: d["retryable"] === true,
  });
}

/** The text, cut between two characters where it would flood a log. */
export function clip(text: string): string {
  if (text.length <= MAX_MESSAGE) return text;
  return `${text.slice(0, MAX_MESSAGE).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** Whether the value is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isKind(kind: string): kind is ErrorKind {
  return (kinds as readonly string[]).includes(kind);
}
