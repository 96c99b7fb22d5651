import { isUtf8 } from "node:buffer";
import { FrameError, isObject } from "./errors.js";
import { MAX_DEPTH } from "./limits.js";

/**
 * JSON as it came, not decoded: what is only handed on keeps every digit and the
 * order of its members.
 */
export class RawJSON {
  /** UTF-8, valid JSON. */
  readonly bytes: Uint8Array;

  /** The bytes must be valid JSON in UTF-8, without newlines; they are not checked. */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** Decodes it. */
  parse(): unknown {
    return JSON.parse(text(this.bytes));
  }
}

/** The bytes as the text that they are. */
export function text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/** The value as JSON; what is raw stays as it is. It throws for what JSON cannot say. */
export function encode(value: unknown): Uint8Array {
  if (value instanceof RawJSON) return value.bytes;
  return Buffer.from(JSON.stringify(value) ?? "null", "utf8");
}

/** The members of one JSON object, each as it stands. */
export type Members = ReadonlyMap<string, RawJSON>;

/**
 * Takes a line apart that must be one JSON object, strictly and without keeping
 * it decoded. Anything else is a {@link FrameError}.
 */
export function members(line: Buffer): Members {
  if (!isUtf8(line)) throw new FrameError("a line that is not UTF-8");
  const found = ranges(line);
  let value: unknown;
  try {
    value = JSON.parse(line.toString("utf8"));
  } catch {
    throw new FrameError("a line that is not JSON");
  }
  if (!isObject(value)) throw new FrameError("a line that is no JSON object");
  const all = new Map<string, RawJSON>();
  for (const { name, value } of found) {
    const meant: unknown = JSON.parse(name.toString("utf8"));
    if (typeof meant !== "string") continue;
    if (all.has(meant)) throw new FrameError("a line with the same member twice");
    all.set(meant, new RawJSON(value));
  }
  return all;
}

interface Range {
  readonly name: Buffer;
  readonly value: Buffer;
}

const quote = 0x22;
const backslash = 0x5c;

/**
 * Where the members of the outermost object are. The line may still be anything:
 * it only must not nest too deep for whoever parses it next.
 */
function ranges(line: Buffer): Range[] {
  const found: Range[] = [];
  let depth = 0;
  let name: Buffer | undefined;
  let value = -1;
  for (let i = 0; i < line.length; i++) {
    switch (line[i]) {
      case quote: {
        const end = endOfString(line, i);
        if (depth === 1 && value < 0) name = line.subarray(i, end);
        i = end - 1;
        break;
      }
      case 0x7b: // {
      case 0x5b: // [
        if (depth === 0 && line[i] !== 0x7b) throw new FrameError("a line that is no JSON object");
        depth++;
        if (depth > MAX_DEPTH) throw new FrameError("a line that nests too deep");
        break;
      case 0x3a: // :
        if (depth === 1 && value < 0) value = i + 1;
        break;
      case 0x2c: // ,
      case 0x7d: // }
      case 0x5d: // ]
        if (depth === 1 && name !== undefined && value >= 0) {
          found.push({ name, value: line.subarray(value, i) });
          name = undefined;
          value = -1;
        }
        if (line[i] !== 0x2c) depth--;
        break;
      default:
        if (depth <= 0 && !isSpace(line[i])) throw new FrameError("a line that is no JSON object");
    }
  }
  return found;
}

/** The index after the string that begins at `start`, or the end of the line. */
function endOfString(line: Buffer, start: number): number {
  for (let end = start; ; ) {
    end = line.indexOf(quote, end + 1);
    if (end < 0) return line.length;
    let escapes = 0;
    while (line[end - 1 - escapes] === backslash) escapes++;
    if (escapes % 2 === 0) return end + 1;
  }
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d || byte === 0x0a;
}
