import { ByteCollector } from '../../platform/byte-collector.js';

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
  private readonly parts = new ByteCollector();
  private length = 0;
  /** Beginning of the current line, when it is above the limit. */
  private head?: string;

  /** @param maxBytes maximum size of one line. */
  constructor(private readonly maxBytes: number) {}

  /** Number of bytes of the current line when it is above the limit, else 0. */
  get excess(): number {
    return this.head === undefined ? 0 : this.length;
  }

  /**
   * Yields the lines that are complete now, and the ends of a line above the limit. Each chunk must be read to its end
   * before the next one.
   */
  *splitChunk(chunk: Buffer): Generator<string | LongLine, void> {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      yield* this.keepPart(chunk.subarray(from, end));
      yield this.endLine();
      from = end + 1;
    }
    yield* this.keepPart(chunk.subarray(from));
  }

  private *keepPart(part: Buffer): Generator<LongLine, void> {
    if (part.length === 0) return;
    this.parts.add(part);
    this.length += part.length;
    if (this.length <= this.maxBytes) return;
    const isFirst = this.head === undefined;
    this.head ??= this.lineText().slice(0, endBytes);
    const tail = Buffer.from(this.parts.bytes.subarray(-endBytes));
    this.parts.clear();
    this.parts.add(tail);
    if (isFirst) yield { head: this.head };
  }

  private endLine(): string | LongLine {
    const text = this.lineText();
    const { head } = this;
    this.parts.clear();
    this.length = 0;
    this.head = undefined;
    const line = text.endsWith('\r') ? text.slice(0, -1) : text;
    return head === undefined ? line : { head, tail: line };
  }

  private lineText(): string {
    return this.parts.bytes.toString('utf8');
  }
}
