import { Readable } from 'node:stream';
import { RialtoError } from '../../kernel/errors.js';

/** Milliseconds after which the export of a stalled reader ends. PostgreSQL ends its snapshot a little later. */
const idleTimeoutMs = 45_000;
/** Time after which PostgreSQL ends the snapshot of a stalled reader. */
export const snapshotIdleTimeout = '60s';

/** Streams large answers, one at a time in this process, and cancels one when its reader stalls. */
export class ExportStream {
  private exporting = false;

  /** Starts the stream of some lines. Throws `unavailable` while another one is running. */
  open(lines: AsyncIterable<string>): Readable {
    if (this.exporting)
      throw new RialtoError('unavailable', { message: 'another export is running', hint: 'try again in a minute' });
    this.exporting = true;
    let made = 0;
    let taken = 0;
    const bytes = encoded(lines, (count) => (made += count));
    const stream = Readable.from(bytes, { objectMode: false, highWaterMark: 65_536 });
    // Counts the bytes that the reader took: how far a stream reads ahead differs between versions of Node.
    const cancelWhenIdle = (): void => {
      const before = taken;
      taken = made - stream.readableLength;
      if (taken === before)
        stream.destroy(new RialtoError('canceled', { message: 'the client stopped reading the export' }));
    };
    const timer = setInterval(cancelWhenIdle, idleTimeoutMs);
    return stream.once('close', () => {
      clearInterval(timer);
      this.exporting = false;
    });
  }
}

async function* encoded(lines: AsyncIterable<string>, onMade: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const text of lines) {
    const bytes = Buffer.from(text);
    onMade(bytes.length);
    yield bytes;
  }
}
