import type { TraceContext } from '../../kernel/call-context.js';
import { randomHex } from '../../kernel/ids.js';

const traceparentShape = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const zeros = /^0+$/;

/**
 * Reads `traceparent` and `tracestate` (W3C Trace Context). When they are malformed or absent, a new trace starts.
 */
export function parseTraceparent(headers: Record<string, string | string[] | undefined>): TraceContext {
  const { traceparent, tracestate } = headers;
  const match = typeof traceparent === 'string' ? traceparentShape.exec(traceparent) : null;
  if (!match || zeros.test(match[1]!) || zeros.test(match[2]!)) return newTrace();
  const state = typeof tracestate === 'string' && tracestate.length <= 512 ? tracestate : undefined;
  return { traceId: match[1]!, spanId: match[2]!, sampled: (parseInt(match[3]!, 16) & 1) === 1, state };
}

export function newTrace(): TraceContext {
  return { traceId: randomHex(16), spanId: randomHex(8), sampled: false };
}

/** Makes the headers that pass a trace to the next hop, with our span as the parent. */
export function traceHeaders(trace: TraceContext, spanId: string): Record<string, string> {
  const traceparent = `00-${trace.traceId}-${spanId}-${trace.sampled ? '01' : '00'}`;
  return trace.state ? { traceparent, tracestate: trace.state } : { traceparent };
}
