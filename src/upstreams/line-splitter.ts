/** Bytes to lines, however they come: split, merged, with or without a carriage return. Pure. */
export class LineSplitter {
  private readonly kept: Buffer[] = [];
  private length = 0;

  /** @param maxBytes of one line. */
  constructor(private readonly maxBytes: number) {}

  /** The lines that are whole now; undefined when one is longer than it may be, and nothing after it can be read. */
  take(chunk: Buffer): string[] | undefined {
    const lines: string[] = [];
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const part = chunk.subarray(from, end);
      if (this.length + part.length > this.maxBytes) return undefined;
      const line = this.length === 0 ? part : Buffer.concat([...this.kept, part]);
      this.clear();
      from = end + 1;
      const text = line.toString('utf8');
      lines.push(text.endsWith('\r') ? text.slice(0, -1) : text);
    }
    const rest = chunk.subarray(from);
    if (rest.length > 0) {
      this.kept.push(rest);
      this.length += rest.length;
    }
    return this.length > this.maxBytes ? undefined : lines;
  }

  private clear(): void {
    this.kept.length = 0;
    this.length = 0;
  }
}
