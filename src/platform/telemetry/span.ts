import type { Attributes } from '@opentelemetry/api';
import type { TraceContext } from '../../kernel/call-context.js';

/** A span of ours: its id goes out with `traceparent`, whether or not spans are exported. */
export interface Span {
  readonly spanId: string;
  end(error?: { code: string }): void;
}

/** Takes spans out of this process. */
export interface SpanExporter {
  start(name: string, parent: TraceContext | undefined, attributes: Attributes): Span;
  close(): Promise<void>;
}
