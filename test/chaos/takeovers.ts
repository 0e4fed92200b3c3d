import { setTimeout as sleep } from 'node:timers/promises';
import { isGone } from '../../src/platform/database/presence.js';
import type { Scene } from './scene.js';

const lookMs = 25;
/** What else was broken lately is not the price of a kill. */
const calmMs = 3_000;

/** Looks all the time which tasks belong to a process that is gone, and how long until somebody else has them. */
export class Takeovers {
  readonly tookMs: number[] = [];
  private isOver = false;
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
    const sorted = [...this.tookMs].sort((a, b) => a - b);
    const at = (share: number): number => Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0);
    return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
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
    for (const key of orphans) if (!this.orphans.has(key)) this.orphans.set(key, now);
    for (const [key, since] of this.orphans) {
      if (orphans.has(key)) continue;
      this.orphans.delete(key);
      if (this.isCalm(since, now)) this.tookMs.push(now - since);
    }
  }

  private isCalm(since: number, now: number): boolean {
    return this.scene.history.faults.every(
      ({ kind, at, until = Infinity }) => kind === 'kill' || at > now || until + calmMs < since,
    );
  }
}
