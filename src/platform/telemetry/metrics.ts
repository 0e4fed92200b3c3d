import { createServer, type Server } from 'node:http';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { systemClock } from '../../kernel/clock.js';

const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

const ages = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 43_200, 259_200];
const answerTimeoutMs = 2_000;
const sameScrapeMs = 500;
/** Due rows are counted up to this number. */
export const mostCounted = 10_000;

/** Kinds of work that sweeps look for, and the outcomes of the items they find (AN-79). */
const dueKinds = ['tasks', 'deliveries', 'cards'] as const;
const sweepOutcomes = ['selected', 'dispatched', 'markedFailed', 'skipped', 'dispatchFailed'] as const;
export type DueKind = (typeof dueKinds)[number];
export type SweepOutcome = (typeof sweepOutcomes)[number];

/** Invariants that are checked while the gateway runs. */
export const invariants = ['I1', 'I2', 'I3', 'I6'] as const;
export type Invariant = (typeof invariants)[number];

/** Waiting work of one kind. */
export interface Waiting {
  readonly count: number;
  readonly lagSeconds: number;
}

/**
 * The metrics of the process itself, which the gateways in it share: each collection of them keeps a timer for as long
 * as the process lives. A scrape of one gateway starts the lag of the event loop anew for all.
 */
const ofProcess = new Registry();

/** Metrics for Prometheus, served on a separate port and never through the public doors. */
export class Metrics {
  readonly registry = new Registry();
  private readonly waiting = new Map<string, () => Promise<Waiting>>();
  private readonly readings = new Map<Gauge, () => number>();
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
  readonly takeovers = new Counter({
    name: 'rialto_lease_takeovers_total',
    help: 'Work taken over from a holder that was lost',
    labelNames: ['kind'],
    registers: [this.registry],
  });
  readonly fencedWrites = new Counter({
    name: 'rialto_fenced_writes_total',
    help: 'Writes that changed nothing, because another holder had changed the row',
    labelNames: ['kind'],
    registers: [this.registry],
  });
  readonly ambiguousSends = new Counter({
    name: 'rialto_ambiguous_sends_total',
    help: 'Requests that were sent and got no answer: it is unknown whether they were received',
    labelNames: ['to'],
    registers: [this.registry],
  });
  readonly swept = new Counter({
    name: 'rialto_swept_total',
    help:
      'Due work that sweeps found: ' +
      'selected, and then dispatched, markedFailed, skipped (already in progress) or dispatchFailed',
    labelNames: ['kind', 'outcome'],
    registers: [this.registry],
  });
  readonly deliveryAttempts = new Counter({
    name: 'rialto_webhook_attempts_total',
    help: 'Attempts to deliver a webhook by outcome: delivered, retry, dead, closed',
    labelNames: ['outcome'],
    registers: [this.registry],
  });
  readonly deliveryAge = new Histogram({
    name: 'rialto_webhook_age_seconds',
    help: 'Age of an event when its webhook was delivered',
    buckets: ages,
    registers: [this.registry],
  });
  readonly webhookConfigs = new Counter({
    name: 'rialto_webhook_configs_total',
    help: 'Changes of state of push configurations: failing, exhausted, disabled, recovered',
    labelNames: ['event'],
    registers: [this.registry],
  });
  readonly webhooksPutOff = new Counter({
    name: 'rialto_webhook_put_off_total',
    help:
      'Webhooks that were due and deferred: ' +
      'full, too many posts were running; down, the breaker of the host was open',
    labelNames: ['why'],
    registers: [this.registry],
  });
  readonly webhooksWaiting = this.readGauge(
    'rialto_webhooks_waiting',
    'Webhooks of this process that wait until their host is up, or until host and org have capacity',
  );
  readonly webhookBreakersOpen = this.readGauge(
    'rialto_webhook_breakers_open',
    'Hosts that are down, so that this process posts no webhooks to them, or none of one org',
  );
  readonly dueLag = this.waitingGauge(
    'rialto_due_lag_seconds',
    'How long the oldest due work waits for a worker, or an audit event for its seal; 0 when none waits',
    ({ lagSeconds }) => lagSeconds,
  );
  readonly due = this.waitingGauge(
    'rialto_due',
    `Work that is due and not taken, counted up to ${mostCounted}`,
    ({ count }) => count,
  );
  readonly invariantViolations = new Counter({
    name: 'rialto_invariant_violation_total',
    help:
      'Must be 0: I1 work that will never run or is past its deadline, ' +
      'I2 an event after the end or a second end, I3 a gap in a log, I6 webhooks out of order',
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
  readonly loopDelay = new Histogram({
    name: 'rialto_loop_delay_seconds',
    help: 'Times over 0.1 s in which the event loop was blocked, by the route of the request that began last',
    labelNames: ['route'],
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [this.registry],
  });
  private server?: Server;

  constructor() {
    if (ofProcess.getMetricsAsArray().length === 0) collectDefaultMetrics({ register: ofProcess });
    for (const inv of invariants) this.invariantViolations.inc({ inv }, 0);
    for (const kind of dueKinds) for (const outcome of sweepOutcomes) this.swept.inc({ kind, outcome }, 0);
  }

  /** The metrics of the gateway and of its process. */
  get all(): Registry {
    return Registry.merge([this.registry, ofProcess]);
  }

  /** Registers how to read the waiting work of a kind; it is called at each scrape. */
  waits(kind: string, ask: () => Promise<Waiting>): void {
    let known: { at: number; answer: Promise<Waiting> } | undefined;
    // All gauges of one scrape share one answer.
    this.waiting.set(kind, () => {
      const at = systemClock.elapsed();
      if (!known || at - known.at > sameScrapeMs) known = { at, answer: ask() };
      return known.answer;
    });
  }

  /** Registers how to read a gauge; it is called at each scrape. */
  reads(gauge: Gauge, read: () => number): void {
    this.readings.set(gauge, read);
  }

  private readGauge(name: string, help: string): Gauge {
    const { readings } = this;
    const collect = function (this: Gauge): void {
      this.set(readings.get(this)?.() ?? 0);
    };
    return new Gauge({ name, help, registers: [this.registry], collect });
  }

  /**
   * Makes a gauge of all waiting work. A kind without an answer in time is absent, instead of shown with an old
   * value.
   */
  private waitingGauge(name: string, help: string, value: (waiting: Waiting) => number): Gauge {
    const { waiting } = this;
    const collect = async function (this: Gauge): Promise<void> {
      this.reset();
      const late = new Promise<undefined>((resolve) => setTimeout(resolve, answerTimeoutMs, undefined).unref());
      for (const [kind, ask] of waiting) {
        const answer = await Promise.race([ask().catch(() => undefined), late]);
        if (answer) this.set({ kind }, value(answer));
      }
    };
    return new Gauge({ name, help, labelNames: ['kind'], registers: [this.registry], collect });
  }

  /** Serves `/metrics`; resolves with the port, rejects when it is taken. */
  async listen(port: number, host: string): Promise<number> {
    const server = createServer((request, response) => {
      if (request.url !== '/metrics') return void response.writeHead(404).end();
      const { all } = this;
      all.metrics().then(
        (text) => response.writeHead(200, { 'Content-Type': all.contentType }).end(text),
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
