import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { SpanExporter } from './span.js';

/** Sends spans to a collector in batches (OTLP over HTTP). The operator configures the endpoint. */
export function openSpanExporter(endpoint: string): SpanExporter {
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` });
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'rialto' }),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  const tracer = provider.getTracer('rialto');
  return {
    start(name, parent, attributes) {
      const context = parent
        ? trace.setSpanContext(ROOT_CONTEXT, {
            ...parent,
            traceState: undefined,
            traceFlags: TraceFlags.SAMPLED,
            isRemote: true,
          })
        : ROOT_CONTEXT;
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, context);
      return {
        spanId: span.spanContext().spanId,
        end: (error) => {
          if (error) span.setStatus({ code: SpanStatusCode.ERROR, message: error.code });
          span.end();
        },
      };
    },
    close: () => provider.shutdown().catch(() => undefined),
  };
}
