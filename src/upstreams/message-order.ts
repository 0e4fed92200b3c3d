import type { Transport } from '@modelcontextprotocol/client';
import { wrapTask } from './task-handle.js';

/**
 * The SDK reads notices a step later than results: the last progress before a result would find nobody. What it cannot read, be it nested
 * too deep to be told of, is an error of the line and no more.
 */
export function keepOrder(line: Transport): void {
  const deliver = line.onmessage;
  line.onmessage = (message, extra) => {
    if ('method' in message) attempt(line, () => deliver?.(message, extra));
    else setImmediate(() => attempt(line, () => deliver?.(wrapTask(message), extra)));
  };
}

function attempt(line: Transport, work: () => void): void {
  try {
    work();
  } catch (error) {
    line.onerror?.(error as Error);
  }
}
