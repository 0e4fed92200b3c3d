import { setTimeout as sleep } from 'node:timers/promises';
import { isGone } from '../../src/platform/database/presence.js';
import { percentile } from './result.js';
import type { Scene } from './scene.js';

const lookMs = 25;
/** What else was broken lately is not the price of a kill. */
const calmMs = 3_000;

/** Looks all the time which tasks belong to a process that is gone, and how long until somebody else has them. */
export class Takeovers {
  readonly tookMs: number[] = [];
  private isOver = false;
  /** When there was last no worker at all. */
  private aloneUntil = 0;
  private readonly looking: Promise<void>;
  private readonly orphans = new Map<string, number>();

  constructor(private readonly scene: Scene) {
    this.looking = this.look();
  }

  async close(): Promise<void> {
    this.isOver = true;
    await this.looking;
  }

  figures(): Record<string, number> {
    const of = (share: number): number => percentile(this.tookMs, share);
    return { count: this.tookMs.length, p50: of(0.5), p99: of(0.99), max: of(1) };
  }

  private async look(): Promise<void> {
    while (!this.isOver) {
      const since = Date.now();
      const found = await this.scene.rows
        .sql<{ key: string }>(
          `select t.id || ' ' || t.lease_epoch as key from a2a_tasks t where t.next_at is not null and t.status_state = 'working'
             and t.lease_owner is not null and ${isGone('t.lease_owner')}`,
        )
        .catch(() => undefined);
      if (found) this.compare(new Set(found.map(({ key }) => key)), since);
      await sleep(lookMs);
    }
  }

  private compare(orphans: ReadonlySet<string>, now: number): void {
    const { slots } = this.scene.fleet;
    if (!slots.some(({ role, isReady }) => role !== 'api' && isReady)) this.aloneUntil = now;
    for (const key of orphans) if (!this.orphans.has(key)) this.orphans.set(key, now);
    for (const [key, since] of this.orphans) {
      if (orphans.has(key)) continue;
      this.orphans.delete(key);
      if (this.aloneUntil < since && this.isCalm(since, now)) this.tookMs.push(now - since);
    }
  }

  private isCalm(since: number, now: number): boolean {
    return this.scene.history.faults.every(
      ({ kind, at, until = Infinity }) => kind === 'kill' || at > now || until + calmMs < since,
    );
  }
}
