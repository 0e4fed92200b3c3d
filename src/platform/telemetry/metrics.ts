import { createServer, type Server } from 'node:http';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** What Prometheus may ask: served on a port of its own, never through the public doors. */
export class Metrics {
  readonly registry = new Registry();
  readonly acts = new Counter({
    name: 'rialto_acts_total',
    help: 'Acts by Cedar action and outcome',
    labelNames: ['action', 'outcome'],
    registers: [this.registry],
  });
  readonly actSeconds = new Histogram({
    name: 'rialto_act_seconds',
    help: 'Duration of acts',
    labelNames: ['action'],
    buckets: seconds,
    registers: [this.registry],
  });
  readonly agents = new Gauge({
    name: 'rialto_agents',
    help: 'Registered agents by health',
    labelNames: ['health'],
    registers: [this.registry],
  });
  readonly streams = new Gauge({ name: 'rialto_streams', help: 'Open streams', registers: [this.registry] });
  readonly limited = new Counter({
    name: 'rialto_rate_limited_total',
    help: 'Requests refused with 429',
    labelNames: ['scope'],
    registers: [this.registry],
  });
  readonly authFailures = new Counter({
    name: 'rialto_auth_failures_total',
    help: 'Requests refused with 401',
    registers: [this.registry],
  });
  readonly invariantViolations = new Counter({
    name: 'rialto_invariant_violation_total',
    help: 'Must read 0',
    labelNames: ['inv'],
    registers: [this.registry],
  });
  readonly http = new Histogram({
    name: 'rialto_http_seconds',
    help: 'HTTP requests',
    labelNames: ['method', 'route', 'status'],
    buckets: seconds,
    registers: [this.registry],
  });
  private server?: Server;

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }

  /** Serves `/metrics`; resolves with the port, rejects when it is taken. */
  async listen(port: number, host: string): Promise<number> {
    const server = createServer((request, response) => {
      if (request.url !== '/metrics') return void response.writeHead(404).end();
      this.registry.metrics().then(
        (text) => response.writeHead(200, { 'Content-Type': this.registry.contentType }).end(text),
        () => response.writeHead(500).end(),
      );
    });
    this.server = server;
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
    const address = server.address();
    return typeof address === 'object' && address ? address.port : port;
  }

  close(): void {
    this.server?.closeAllConnections();
    this.server?.close();
  }
}
