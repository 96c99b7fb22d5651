import type { ErrorDetail } from "./errors.js";
import { FrameError } from "./errors.js";
import { encode, members, type RawJSON } from "./json.js";
import { MAX_FRAME, MAX_RAW } from "./limits.js";

/** A frame that came in. Which members are set says what it is. */
export interface Frame {
  readonly id: string;
  readonly parentId: string;
  readonly method: string;
  readonly token: string;
  /** Undefined when it was missing or null, which are the same. */
  readonly data: RawJSON | undefined;
  /** Empty means that nothing failed. */
  readonly error: string;
  readonly detail: unknown;
  /** How many bytes belong to the frame and follow in frames of their own. */
  readonly body: number;
  /** The raw bytes that followed the frame's line. */
  readonly raw: Uint8Array;
}

/** A frame that goes out. */
export interface OutFrame {
  readonly id: string;
  readonly parent_id?: string;
  readonly method?: string;
  readonly token?: string;
  readonly data?: unknown;
  readonly error?: string;
  readonly detail?: ErrorDetail;
  readonly body?: number;
  /** At most {@link MAX_RAW} bytes. */
  readonly raw?: Uint8Array;
}

/** A frame that was not sent, because it would break a limit or is no JSON. */
export class NotSent extends Error {
  override readonly name = "NotSent";
}

/** The frame's line, and the raw bytes behind it. It throws {@link NotSent}. */
export function encodeFrame(frame: OutFrame): Uint8Array[] {
  const { data, raw, ...rest } = frame;
  const head = JSON.stringify(raw === undefined ? rest : { ...rest, raw: raw.length });
  const reply = frame.method === undefined && frame.error === undefined;
  if (data === undefined && !reply) return lines([Buffer.from(`${head}\n`)], raw);
  let encoded: Uint8Array;
  try {
    encoded = encode(data);
  } catch (cause) {
    throw new NotSent("the data cannot be encoded as JSON", { cause });
  }
  return lines([Buffer.from(`${head.slice(0, -1)},"data":`), encoded, Buffer.from("}\n")], raw);
}

function lines(line: Uint8Array[], raw: Uint8Array | undefined): Uint8Array[] {
  const length = line.reduce((sum, piece) => sum + piece.length, 0);
  if (length > MAX_FRAME) throw new NotSent("the frame would be longer than 16 MiB");
  if (raw === undefined) return line;
  if (raw.length > MAX_RAW) throw new NotSent("more raw bytes than may follow one frame");
  return [...line, raw];
}

/** What a line says, and how many raw bytes follow it. */
export interface ParsedLine {
  readonly frame: Frame;
  readonly rawLength: number;
}

const nothing = new Uint8Array(0);

/**
 * Takes a line without its newline apart. Without `bulk` the members `raw` and
 * `body` mean nothing, like any unknown one. It throws {@link FrameError}.
 */
export function parseLine(line: Buffer, bulk: boolean): ParsedLine {
  const all = members(line);
  const detail = all.get("detail")?.parse();
  const data = all.get("data");
  return {
    frame: {
      id: string(all.get("id"), "id"),
      parentId: string(all.get("parent_id"), "parent_id"),
      method: string(all.get("method"), "method"),
      token: string(all.get("token"), "token"),
      data: data === undefined || isNull(data) ? undefined : data,
      error: string(all.get("error"), "error"),
      detail,
      body: bulk ? count(all.get("body"), "body", Number.MAX_SAFE_INTEGER) : 0,
      raw: nothing,
    },
    rawLength: bulk ? count(all.get("raw"), "raw", MAX_RAW) : 0,
  };
}

function string(value: RawJSON | undefined, name: string): string {
  const meant = value?.parse() ?? "";
  if (typeof meant !== "string") throw new FrameError(`a frame whose ${name} is not a string`);
  return meant;
}

function count(value: RawJSON | undefined, name: string, limit: number): number {
  const meant = value?.parse() ?? 0;
  if (typeof meant !== "number" || !Number.isSafeInteger(meant) || meant < 0 || meant > limit) {
    throw new FrameError(`a frame whose ${name} is not a number from 0 to ${limit}`);
  }
  return meant;
}

/** Only null can begin with an n. */
function isNull(value: RawJSON): boolean {
  return Buffer.from(value.bytes.buffer, value.bytes.byteOffset, Math.min(value.bytes.length, 64))
    .toString("latin1")
    .trimStart()
    .startsWith("n");
}
