import type { Clock } from '../../kernel/clock.js';
import type { TaskUpdate } from '../../tasks/executor.port.js';

/** Each is an event of its task: what comes faster is put together. */
const everyMs = 100;
const artifactId = 'answer';

/**
 * What a model says piece by piece, as chunks of one artifact. The first of them takes the place of what is there: thoughts before a call
 * of a tool, or what a lost process had sent already. The newest piece is held back, so that the last chunk can say that it is the last.
 */
export class TextChunks {
  private held = '';
  private isBegun = false;
  private last: number;

  constructor(private readonly clock: Pick<Clock, 'elapsed'>) {
    this.last = clock.elapsed();
  }

  /** What is due to be sent with this piece of text. */
  add(text: string): TaskUpdate | undefined {
    const before = this.held;
    this.held += text;
    const now = this.clock.elapsed();
    if (before === '' || now - this.last < everyMs) return undefined;
    this.last = now;
    // Half of a character waits for the other.
    const isHalf = /[\uD800-\uDBFF]$/.test(before);
    this.held = isHalf ? before.slice(-1) + text : text;
    return this.chunk(isHalf ? before.slice(0, -1) : before, false);
  }

  /** The rest. @param isAnswer false for words that are not the last. */
  end(isAnswer: boolean): TaskUpdate | undefined {
    return this.held === '' ? undefined : this.chunk(this.held, isAnswer);
  }

  private chunk(text: string, lastChunk: boolean): TaskUpdate | undefined {
    if (text === '') return undefined;
    const append = this.isBegun;
    this.isBegun = true;
    const clean = text.toWellFormed().replaceAll('\u0000', '\uFFFD');
    return { artifact: { artifactId, name: artifactId, parts: [{ text: clean }] }, append, lastChunk };
  }
}
