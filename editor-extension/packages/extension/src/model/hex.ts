/** Bytes as lines of an offset, 16 bytes in hexadecimal, and what of them is text. */
export function dump(content: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < content.length; at += 16) {
    const row = content.subarray(at, at + 16);
    const hex = Array.from(row, (byte) => byte.toString(16).padStart(2, "0"));
    const left = hex.slice(0, 8).join(" ");
    const right = hex.slice(8).join(" ");
    const text = Array.from(row, (byte) =>
      byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".",
    ).join("");
    lines.push(
      `${at.toString(16).padStart(8, "0")}  ${left.padEnd(23)}  ${right.padEnd(23)}  |${text}|\n`,
    );
  }
  return lines.join("");
}
