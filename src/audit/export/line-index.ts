import type { FileHandle } from 'node:fs/promises';

const newline = 10;
/** Longest line that is read: far more than an event can have. */
const maxLineBytes = 16_777_216;

/** Position of a line in a file, in bytes. */
export interface LinePlace {
  readonly start: number;
  readonly length: number;
}

/** Positions of lines with ascending keys, for example the events of an export by sequence. */
export class LineIndex {
  private readonly keys: number[] = [];
  private readonly starts: number[] = [];
  private readonly lengths: number[] = [];

  constructor(private readonly file: FileHandle) {}

  /** Key of the last line; 0 without one. */
  get lastKey(): number {
    return this.keys.at(-1) ?? 0;
  }

  /** Adds a line; false when its key is not higher than the last one. */
  add(key: number, { start, length }: LinePlace): boolean {
    if (key <= this.lastKey) return false;
    this.keys.push(key);
    this.starts.push(start);
    this.lengths.push(length);
    return true;
  }

  /** Reads the line with a key. */
  async at(key: number): Promise<string | undefined> {
    const index = this.firstFrom(key);
    return this.keys[index] === key ? this.read(index) : undefined;
  }

  /** Reads the first lines with higher keys. */
  after(key: number, limit: number): Promise<string[]> {
    const first = this.firstFrom(key + 1);
    const count = Math.min(limit, this.keys.length - first);
    return Promise.all(Array.from({ length: count }, (_, index) => this.read(first + index)));
  }

  private async read(index: number): Promise<string> {
    const length = this.lengths[index]!;
    const { buffer, bytesRead } = await this.file.read(Buffer.alloc(length), 0, length, this.starts[index]);
    return buffer.toString('utf8', 0, bytesRead);
  }

  /** Returns the index of the first key that is not lower, by binary search. */
  private firstFrom(key: number): number {
    let [low, high] = [0, this.keys.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.keys[middle]! < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Reads the lines of a file with their positions. Empty lines are left out. Throws for a line over 16 MiB. */
export async function* indexedLines(file: FileHandle): AsyncGenerator<LinePlace & { text: string }> {
  let rest: Buffer = Buffer.alloc(0);
  let start = 0;
  for await (const chunk of file.createReadStream({ start: 0, autoClose: false })) {
    rest = rest.length === 0 ? (chunk as Buffer) : Buffer.concat([rest, chunk as Buffer]);
    for (let end = rest.indexOf(newline); end >= 0; end = rest.indexOf(newline)) {
      if (end > 0) yield { text: rest.toString('utf8', 0, end), start, length: end };
      rest = rest.subarray(end + 1);
      start += end + 1;
    }
    if (rest.length > maxLineBytes) throw new Error('a line is longer than 16 MiB');
  }
  if (rest.length > 0) yield { text: rest.toString('utf8'), start, length: rest.length };
}
