import type { Transport } from '@modelcontextprotocol/client';

/** The SDK reads notices a step later than results: the last progress before a result would find nobody. */
export function keepOrder(line: Transport): void {
  const deliver = line.onmessage;
  line.onmessage = (message, extra) => {
    if ('method' in message) deliver?.(message, extra);
    else setImmediate(() => deliver?.(message, extra));
  };
}
