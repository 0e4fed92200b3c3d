import type { Attributes } from '@opentelemetry/api';
import type { TraceContext } from '../../kernel/call-context.js';
import { randomHex } from '../../kernel/ids.js';
import type { Span, SpanExporter } from './span.js';

/** Creates spans explicitly at a few important places; they are exported over OTLP when an endpoint is set. */
export class Tracing {
  private exporter?: SpanExporter;

  /** Loads the exporter only when an endpoint is set, because it costs memory. */
  static async load(endpoint: string | undefined): Promise<Tracing> {
    const tracing = new Tracing();
    if (endpoint) tracing.exporter = (await import('./span-exporter.js')).openSpanExporter(endpoint);
    return tracing;
  }

  startSpan(name: string, parent: TraceContext | undefined, attributes: Attributes): Span {
    if (this.exporter) return this.exporter.start(name, parent, attributes);
    return { spanId: randomHex(8), end: () => undefined };
  }

  async close(): Promise<void> {
    await this.exporter?.close();
  }
}
