import type { Socket } from 'node:net';

/** Milliseconds without a byte after which a reader fails. */
const silenceMs = 60_000;
const maxLine = 65_536;

/**
 * Reads a socket by lines and by byte counts. Every method throws when the connection ends, breaks or is silent too
 * long before the data is complete.
 */
export class ByteReader {
  private readonly pieces: Buffer[] = [];
  private length = 0;
  private isEnded = false;
  private failure?: Error;
  private wake: () => void = () => undefined;

  constructor(socket: Socket) {
    socket.on('data', (piece: Buffer) => {
      this.pieces.push(piece);
      this.length += piece.length;
      this.wake();
    });
    socket.on('end', () => {
      this.isEnded = true;
      this.wake();
    });
    socket.on('error', (error) => {
      this.failure = error;
      this.wake();
    });
    socket.on('close', () => {
      this.isEnded = true;
      this.wake();
    });
  }

  /** Reads a line without its CRLF, as latin1. Throws for a bare CR or LF. */
  async line(): Promise<string> {
    for (;;) {
      const bytes = this.joined();
      const end = bytes.indexOf('\n');
      if (end < 0 && bytes.length > maxLine) throw new Error('a line has no end');
      if (end >= 0) {
        const line = (await this.take(end + 1)).toString('latin1');
        if (!line.endsWith('\r\n') || line.indexOf('\r') < line.length - 2)
          throw new Error(`a line has a bare CR or LF: ${JSON.stringify(line)}`);
        return line.slice(0, -2);
      }
      await this.more();
    }
  }

  /** Reads exactly `count` bytes. */
  async take(count: number): Promise<Buffer> {
    while (this.length < count) await this.more();
    const bytes = this.joined();
    this.pieces.length = 0;
    if (bytes.length > count) this.pieces.push(bytes.subarray(count));
    this.length -= count;
    return bytes.subarray(0, count);
  }

  /** Reads everything until the connection ends. */
  async rest(): Promise<Buffer> {
    while (!this.isEnded) await this.more();
    if (this.failure) throw this.failure;
    return this.take(this.length);
  }

  private joined(): Buffer {
    if (this.pieces.length > 1) this.pieces.splice(0, this.pieces.length, Buffer.concat(this.pieces));
    return this.pieces[0] ?? Buffer.alloc(0);
  }

  private more(): Promise<void> {
    if (this.failure) throw this.failure;
    if (this.isEnded)
      throw new Error(`the connection ended; unread: ${JSON.stringify(this.joined().toString('latin1').slice(-200))}`);
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`no byte arrived for ${silenceMs} ms`)), silenceMs);
      this.wake = () => {
        clearTimeout(late);
        this.wake = () => undefined;
        resolve();
      };
    });
  }
}
