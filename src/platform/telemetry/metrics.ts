import { createServer, type Server } from 'node:http';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { systemClock } from '../../kernel/clock.js';

const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

const ages = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 43_200, 259_200];
const askedMs = 2_000;
const sameScrapeMs = 500;
/** More due rows than this are not counted. */
export const mostCounted = 10_000;

/** Work that sweeps look for, and what becomes of what they find (AN-79). */
const dueKinds = ['tasks', 'deliveries', 'cards'] as const;
const sweepOutcomes = ['selected', 'dispatched', 'markedFailed', 'skipped', 'dispatchFailed'] as const;
export type DueKind = (typeof dueKinds)[number];
export type SweepOutcome = (typeof sweepOutcomes)[number];

/** Promises that are looked at while the gateway runs (reliability 3.0). */
export const invariants = ['I1', 'I2', 'I3', 'I6'] as const;
export type Invariant = (typeof invariants)[number];

/** What waits of a kind of work. */
export interface Waiting {
  readonly count: number;
  readonly lagSeconds: number;
}

/** What Prometheus may ask: served on a port of its own, never through the public doors. */
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
    help: 'Writes that changed nothing, because somebody else had moved the row on',
    labelNames: ['kind'],
    registers: [this.registry],
  });
  readonly ambiguousSends = new Counter({
    name: 'rialto_ambiguous_sends_total',
    help: 'Requests that went out and brought no answer: nobody knows whether they were taken',
    labelNames: ['to'],
    registers: [this.registry],
  });
  readonly swept = new Counter({
    name: 'rialto_swept_total',
    help: 'Due work that sweeps came upon: selected, and then dispatched, markedFailed, skipped (somebody has it) or dispatchFailed',
    labelNames: ['kind', 'outcome'],
    registers: [this.registry],
  });
  readonly deliveryAttempts = new Counter({
    name: 'rialto_webhook_attempts_total',
    help: 'Tries to deliver a webhook by what followed: delivered, retry, dead, closed',
    labelNames: ['outcome'],
    registers: [this.registry],
  });
  readonly deliveryAge = new Histogram({
    name: 'rialto_webhook_age_seconds',
    help: 'Age of an event when its webhook was taken',
    buckets: ages,
    registers: [this.registry],
  });
  readonly webhookConfigs = new Counter({
    name: 'rialto_webhook_configs_total',
    help: 'What became of push configurations: failing, exhausted, disabled, recovered',
    labelNames: ['event'],
    registers: [this.registry],
  });
  readonly webhooksPutOff = new Counter({
    name: 'rialto_webhook_put_off_total',
    help: 'Webhooks that were due and not tried: full, too many posts were under way; down, the breaker of the host was open',
    labelNames: ['why'],
    registers: [this.registry],
  });
  readonly webhooksWaiting = this.read(
    'rialto_webhooks_waiting',
    'Webhooks of this process that wait until their host is up, or has room as their org',
  );
  readonly webhookBreakersOpen = this.read(
    'rialto_webhook_breakers_open',
    'Hosts that this process posts no webhooks to, or none of an org, because they are down',
  );
  readonly dueLag = this.asked(
    'rialto_due_lag_seconds',
    'How long the oldest work that is due waits for somebody, or an audit event for its seal; 0 when none does',
    ({ lagSeconds }) => lagSeconds,
  );
  readonly due = this.asked(
    'rialto_due',
    `Work that is due and that nobody has taken, counted up to ${mostCounted}`,
    ({ count }) => count,
  );
  readonly invariantViolations = new Counter({
    name: 'rialto_invariant_violation_total',
    help: 'Must read 0: I1 work nobody will ever do or past its deadline, I2 an event after the end or a second end, I3 a gap in a log, I6 webhooks out of order',
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
    help: 'Times of more than 0.1 s in which the process did nothing else, by the route of the request that had begun last',
    labelNames: ['route'],
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [this.registry],
  });
  private server?: Server;

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    for (const inv of invariants) this.invariantViolations.inc({ inv }, 0);
    for (const kind of dueKinds) for (const outcome of sweepOutcomes) this.swept.inc({ kind, outcome }, 0);
  }

  /** Tells how to learn what waits of a kind; asked whenever somebody scrapes. */
  waits(kind: string, ask: () => Promise<Waiting>): void {
    let known: { at: number; answer: Promise<Waiting> } | undefined;
    // One look for all gauges of a scrape.
    this.waiting.set(kind, () => {
      const at = systemClock.elapsed();
      if (!known || at - known.at > sameScrapeMs) known = { at, answer: ask() };
      return known.answer;
    });
  }

  /** Tells how to read a gauge; read whenever somebody scrapes. */
  reads(gauge: Gauge, read: () => number): void {
    this.readings.set(gauge, read);
  }

  private read(name: string, help: string): Gauge {
    const { readings } = this;
    const collect = function (this: Gauge): void {
      this.set(readings.get(this)?.() ?? 0);
    };
    return new Gauge({ name, help, registers: [this.registry], collect });
  }

  /** A gauge over everything that waits. What does not answer in time is not shown, rather than shown as it was. */
  private asked(name: string, help: string, value: (waiting: Waiting) => number): Gauge {
    const { waiting } = this;
    const collect = async function (this: Gauge): Promise<void> {
      this.reset();
      const late = new Promise<undefined>((resolve) => setTimeout(resolve, askedMs, undefined).unref());
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
