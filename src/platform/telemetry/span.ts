import type { Attributes } from '@opentelemetry/api';
import type { TraceContext } from '../../kernel/call-context.js';

/** A span of the gateway. Its id is sent in `traceparent`, whether or not spans are exported. */
export interface Span {
  readonly spanId: string;
  end(error?: { code: string }): void;
}

/** Exports spans out of this process. */
export interface SpanExporter {
  start(name: string, parent: TraceContext | undefined, attributes: Attributes): Span;
  close(): Promise<void>;
}
