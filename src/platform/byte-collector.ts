const maxTinyChunks = 10_000;
const tinyBytes = 64;

/**
 * True for more than 10,000 chunks of less than 64 bytes on average: they take seconds of processor time for each
 * megabyte.
 */
export function isShredded(chunks: number, bytes: number): boolean {
  return chunks > maxTinyChunks && bytes < chunks * tinyBytes;
}

/**
 * Collects the chunks of a body or a line. It copies them into one growing buffer, because a list of tiny chunks takes
 * a hundred times the memory of their bytes. A single chunk is not copied.
 */
export class ByteCollector {
  private buffer: Buffer = Buffer.alloc(0);
  private used = 0;
  private chunks = 0;

  /** Number of bytes. */
  get size(): number {
    return this.used;
  }

  /** All bytes so far; valid until the next chunk. */
  get bytes(): Buffer {
    return this.buffer.subarray(0, this.used);
  }

  /** True when the bytes arrived in too many tiny chunks. */
  get isShredded(): boolean {
    return isShredded(this.chunks, this.used);
  }

  add(chunk: Uint8Array): void {
    this.chunks += 1;
    const size = this.used + chunk.length;
    if (this.used === 0) this.buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    else if (size > this.buffer.length) this.grow(size);
    if (this.used > 0) this.buffer.set(chunk, this.used);
    this.used = size;
  }

  clear(): void {
    this.buffer = Buffer.alloc(0);
    this.used = 0;
    this.chunks = 0;
  }

  private grow(size: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.used, size));
    larger.set(this.bytes);
    this.buffer = larger;
  }
}
