import type { Writable } from 'node:stream';
import { StandaloneConnector } from 'ioredis/built/connectors/index.js';

/** A way to Redis whose commands of one turn leave in one write: under load the system calls cost as much as the commands. */
export class GatheringConnector extends StandaloneConnector {
  override async connect(
    ...told: Parameters<StandaloneConnector['connect']>
  ): ReturnType<StandaloneConnector['connect']> {
    return gathered(await super.connect(...told));
  }
}

/** Holds back what is written until the turn is over. */
export function gathered<Stream extends Writable>(stream: Stream): Stream {
  const write = stream.write.bind(stream) as (...words: unknown[]) => boolean;
  let isHeld = false;
  const flush = (): void => {
    isHeld = false;
    stream.uncork();
  };
  stream.write = (...words: unknown[]): boolean => {
    if (!isHeld) {
      isHeld = true;
      stream.cork();
      process.nextTick(flush);
    }
    return write(...words);
  };
  return stream;
}
