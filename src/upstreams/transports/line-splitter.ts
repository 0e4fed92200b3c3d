/**
 * Line above the size limit: reported with its head when the limit is exceeded, and with its head and tail when it
 * ends.
 */
export interface LongLine {
  readonly head: string;
  /** Absent while the line continues. */
  readonly tail?: string;
}

/** Number of bytes that are kept of each end of a line above the limit. */
const endBytes = 4_096;

/** Splits bytes into lines, independent of how the chunks are cut, with or without carriage returns. Pure. */
export class LineSplitter {
  private readonly parts: Buffer[] = [];
  private length = 0;
  /** Beginning of the current line, when it is above the limit. */
  private head?: string;

  /** @param maxBytes maximum size of one line. */
  constructor(private readonly maxBytes: number) {}

  /** Number of bytes of the current line when it is above the limit, else 0. */
  get excess(): number {
    return this.head === undefined ? 0 : this.length;
  }

  /** Returns the lines that are complete now, and the ends of a line above the limit. */
  splitChunk(chunk: Buffer): (string | LongLine)[] {
    const lines: (string | LongLine)[] = [];
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      this.keepPart(chunk.subarray(from, end), lines);
      lines.push(this.endLine());
      from = end + 1;
    }
    this.keepPart(chunk.subarray(from), lines);
    return lines;
  }

  private keepPart(part: Buffer, lines: (string | LongLine)[]): void {
    if (part.length === 0) return;
    this.parts.push(part);
    this.length += part.length;
    if (this.length <= this.maxBytes) return;
    if (this.head === undefined) {
      this.head = this.lineText().slice(0, endBytes);
      lines.push({ head: this.head });
    }
    const tail = Buffer.from(Buffer.concat(this.parts).subarray(-endBytes));
    this.parts.length = 0;
    this.parts.push(tail);
  }

  private endLine(): string | LongLine {
    const text = this.lineText();
    const { head } = this;
    this.parts.length = 0;
    this.length = 0;
    this.head = undefined;
    const line = text.endsWith('\r') ? text.slice(0, -1) : text;
    return head === undefined ? line : { head, tail: line };
  }

  private lineText(): string {
    return (this.parts.length === 1 ? this.parts[0]! : Buffer.concat(this.parts)).toString('utf8');
  }
}
