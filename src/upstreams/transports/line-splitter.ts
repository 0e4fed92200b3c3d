/** A line that is longer than it may be: how it begins, as soon as that is seen; then how it ends. */
export interface LongLine {
  readonly head: string;
  /** Absent while the line goes on. */
  readonly tail?: string;
}

/** Of a line that is too long, so much of each end is kept. */
const kept = 4_096;

/** Bytes to lines, however they come: split, merged, with or without a carriage return. Pure. */
export class LineSplitter {
  private readonly parts: Buffer[] = [];
  private length = 0;
  /** How the line began that is too long. */
  private head?: string;

  /** @param maxBytes of one line. */
  constructor(private readonly maxBytes: number) {}

  /** Bytes of the line that is too long; 0 without one. */
  get excess(): number {
    return this.head === undefined ? 0 : this.length;
  }

  /** The lines that are whole now; of one that is too long its ends. */
  take(chunk: Buffer): (string | LongLine)[] {
    const lines: (string | LongLine)[] = [];
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      this.keep(chunk.subarray(from, end), lines);
      lines.push(this.end());
      from = end + 1;
    }
    this.keep(chunk.subarray(from), lines);
    return lines;
  }

  private keep(part: Buffer, lines: (string | LongLine)[]): void {
    if (part.length === 0) return;
    this.parts.push(part);
    this.length += part.length;
    if (this.length <= this.maxBytes) return;
    if (this.head === undefined) {
      this.head = this.text().slice(0, kept);
      lines.push({ head: this.head });
    }
    const tail = Buffer.from(Buffer.concat(this.parts).subarray(-kept));
    this.parts.length = 0;
    this.parts.push(tail);
  }

  private end(): string | LongLine {
    const text = this.text();
    const { head } = this;
    this.parts.length = 0;
    this.length = 0;
    this.head = undefined;
    const line = text.endsWith('\r') ? text.slice(0, -1) : text;
    return head === undefined ? line : { head, tail: line };
  }

  private text(): string {
    return (this.parts.length === 1 ? this.parts[0]! : Buffer.concat(this.parts)).toString('utf8');
  }
}
