import { BoundedMap } from '../../kernel/bounded-map.js';
import type { Logger } from './logger.js';
import type { Invariant, Metrics } from './metrics.js';

const maxRemembered = 10_000;

/** Counts each violated invariant once, however often it is found. */
export class Breaches {
  private readonly known = new BoundedMap<string, true>(maxRemembered);

  constructor(
    private readonly metrics: Metrics,
    private readonly log: Logger,
  ) {}

  count(inv: Invariant, id: string): void {
    const key = `${inv} ${id}`;
    if (this.known.has(key)) return;
    this.known.set(key, true);
    this.metrics.invariantViolations.inc({ inv });
    this.log.error({ inv, id }, 'an invariant is violated');
  }
}
