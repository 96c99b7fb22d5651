/** How many bytes stand in a line. */
const row = 16;

/** A line without its bytes: the offset, two groups of eight bytes, and what of them is text. */
const empty = `${" ".repeat(8)}  ${" ".repeat(23)}  ${" ".repeat(23)}  |`;

const digits = Buffer.from("0123456789abcdef");
const [point = 0, bar = 0, newline = 0] = Buffer.from(".|\n");

/** Bytes as lines of an offset, 16 bytes in hexadecimal, and what of them is text. */
export function dump(content: Uint8Array): string {
  // In place, and not of a text for each byte: nobody else is served meanwhile.
  const lines = Math.ceil(content.length / row);
  const out = Buffer.alloc(lines * (empty.length + 2) + content.length, empty.charCodeAt(0));
  let at = 0;
  for (let first = 0; first < content.length; first += row) {
    at += out.write(empty, at, "latin1");
    let offset = at - empty.length;
    for (let shift = 28; shift >= 0; shift -= 4) {
      out[offset++] = digits[(first >>> shift) & 15] ?? 0;
    }
    const end = Math.min(first + row, content.length);
    for (let i = first; i < end; i++) {
      const byte = content[i] ?? 0;
      offset += i % 8 === 0 ? 2 : 1;
      out[offset++] = digits[byte >>> 4] ?? 0;
      out[offset++] = digits[byte & 15] ?? 0;
      out[at++] = byte >= 0x20 && byte < 0x7f ? byte : point;
    }
    out[at++] = bar;
    out[at++] = newline;
  }
  return out.toString("latin1", 0, at);
}
