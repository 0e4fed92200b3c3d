import type { Writable } from 'node:stream';
import { StandaloneConnector } from 'ioredis/built/connectors/index.js';

/**
 * A connection to Redis that sends the commands of one turn of the event loop in one write. Under load, the system
 * calls cost as much as the commands.
 */
export class GatheringConnector extends StandaloneConnector {
  override async connect(
    ...options: Parameters<StandaloneConnector['connect']>
  ): ReturnType<StandaloneConnector['connect']> {
    return gathered(await super.connect(...options));
  }
}

/** Buffers what is written until the current turn of the event loop ends. */
export function gathered<Stream extends Writable>(stream: Stream): Stream {
  const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
  let isHeld = false;
  const flush = (): void => {
    isHeld = false;
    stream.uncork();
  };
  stream.write = (...args: unknown[]): boolean => {
    if (!isHeld) {
      isHeld = true;
      stream.cork();
      process.nextTick(flush);
    }
    return write(...args);
  };
  return stream;
}
