import type { Clock } from '../../kernel/clock.js';
import type { TaskUpdate } from '../../tasks/executor.port.js';

/**
 * Shortest time between two chunks, in milliseconds: each chunk is an event of its task, so faster pieces are joined.
 */
const everyMs = 100;
const artifactId = 'answer';

/**
 * Sends the text of a model as chunks of one artifact. The first chunk replaces the earlier content: text before a
 * tool call, or text that a lost process had sent. The newest piece is held back, so that the last chunk can be marked
 * as the last.
 */
export class TextChunks {
  private buffered = '';
  private isBegun = false;
  private last: number;

  constructor(private readonly clock: Pick<Clock, 'elapsed'>) {
    this.last = clock.elapsed();
  }

  /** Returns the chunk that is due now; undefined when none is. */
  add(text: string): TaskUpdate | undefined {
    const before = this.buffered;
    this.buffered += text;
    const now = this.clock.elapsed();
    if (before === '' || now - this.last < everyMs) return undefined;
    this.last = now;
    // The first half of a surrogate pair waits for the second.
    const isHalf = /[\uD800-\uDBFF]$/.test(before);
    this.buffered = isHalf ? before.slice(-1) + text : text;
    return this.chunk(isHalf ? before.slice(0, -1) : before, false);
  }

  /**
   * Returns the rest of the text.
   * @param isAnswer false for text that is not the final answer.
   */
  end(isAnswer: boolean): TaskUpdate | undefined {
    return this.buffered === '' ? undefined : this.chunk(this.buffered, isAnswer);
  }

  private chunk(text: string, lastChunk: boolean): TaskUpdate | undefined {
    if (text === '') return undefined;
    const append = this.isBegun;
    this.isBegun = true;
    const clean = text.toWellFormed().replaceAll('\u0000', '\uFFFD');
    return { artifact: { artifactId, name: artifactId, parts: [{ text: clean }] }, append, lastChunk };
  }
}
