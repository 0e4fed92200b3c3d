import { ByteCollector } from '../../platform/byte-collector.js';
import { maxAnswerBytes } from './answer-reader.js';

/*
 * The incomplete line and the incomplete event of an event stream. Of one above the size limit, only both ends are
 * kept: the id of the message is in one of them.
 */

const endLength = 4_096;
/** Number of texts that are joined at once: a list of millions takes long to join, and much memory. */
const joinedAtOnce = 1_000;

/** Bytes of the line that is not complete yet. */
export class OpenLine {
  private readonly rest = new ByteCollector();
  private head?: Buffer;
  private skipped = 0;

  add(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.rest.add(chunk);
    if (this.rest.size <= maxAnswerBytes) return;
    this.head ??= Buffer.from(this.rest.bytes.subarray(0, endLength));
    const tail = Buffer.from(this.rest.bytes.subarray(-endLength));
    this.skipped += this.rest.size - tail.length;
    this.rest.clear();
    this.rest.add(tail);
  }

  /** Returns the line, and how many of its bytes are missing, and starts the next one. */
  take(): { text: string; skipped: number } {
    const { head, rest, skipped } = this;
    const text = (head?.toString('utf8') ?? '') + rest.bytes.toString('utf8');
    this.head = undefined;
    this.skipped = 0;
    rest.clear();
    return { text, skipped };
  }
}

/** Data of the event that is not complete yet. */
export class OpenEvent {
  /** True when the event has data. */
  isBegun = false;
  private readonly raw = new Pieces();
  private readonly content = new Pieces();
  private held = 0;
  private ends?: string;

  /**
   * Adds a `data` field.
   * @param skipped how many bytes of the line are missing.
   */
  add(line: string, skipped: number): void {
    this.isBegun = true;
    this.raw.add(`${line}\n`);
    this.content.add(`${line.slice('data:'.length)}\n`);
    this.held += Buffer.byteLength(line) + 1 + skipped;
    if (this.held <= maxAnswerBytes) return;
    this.ends = this.contentOrEnds();
    this.raw.take();
    this.held = 0;
  }

  /** Returns the lines of the event, and their data alone; of too long data only both ends. Starts the next event. */
  take(): { raw: string; content: string; isTooLong: boolean } {
    const isTooLong = this.ends !== undefined;
    const content = isTooLong ? this.contentOrEnds() : this.content.take();
    const raw = this.raw.take();
    this.isBegun = false;
    this.ends = undefined;
    this.held = 0;
    return { raw, content, isTooLong };
  }

  private contentOrEnds(): string {
    const text = (this.ends ?? '') + this.content.take();
    return text.length <= 2 * endLength ? text : text.slice(0, endLength) + text.slice(-endLength);
  }
}

/** Text in pieces, few of which are kept as they are. */
class Pieces {
  private few: string[] = [];
  private joined: string[] = [];

  add(text: string): void {
    if (this.few.push(text) < joinedAtOnce) return;
    this.joined.push(this.few.join(''));
    this.few = [];
  }

  take(): string {
    const text = this.joined.join('') + this.few.join('');
    this.few = [];
    this.joined = [];
    return text;
  }
}
