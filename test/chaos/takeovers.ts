import { setTimeout as sleep } from 'node:timers/promises';
import { isGone } from '../../src/platform/database/presence.js';
import { percentile } from './result.js';
import type { Scene } from './scene.js';

const pollMs = 25;
/** A takeover within this time after another kind of fault does not count. */
const calmMs = 3_000;

/** A distribution, in milliseconds. */
export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Work other than tasks: its figures are printed but have no limit yet. */
const beside: ReadonlySet<string> = new Set(['webhooks', 'continuations']);

/** Leased work by kind: the name of the agent, or another kind. `key` changes with the holder. */
const held = `
  select t.agent_name as kind, t.id || ' ' || t.lease_epoch as key, t.lease_owner as owner from a2a_tasks t
    where t.next_at is not null and t.status_state = 'working' and t.lease_owner is not null
  union all select 'webhooks', d.id || ' ' || d.lease_until, d.lease_owner from webhook_deliveries d
    where d.status = 'pending' and d.lease_owner is not null
  union all select 'continuations', c.id || ' ' || c.lease_epoch, c.lease_owner from thread_answers c
    where c.lease_owner is not null`;

/** Polls for work of processes that are gone, and measures the time until another process holds it. */
export class Takeovers {
  /** Takeover times in milliseconds, by the kind of work. */
  private readonly durationsMs = new Map<string, number[]>();
  private isOver = false;
  /** The last time when no process of a role was ready. */
  private readonly missingUntil = { api: 0, worker: 0 };
  private readonly polling: Promise<void>;
  private readonly orphans = new Map<string, { readonly kind: string; readonly since: number }>();

  constructor(private readonly scene: Scene) {
    this.polling = this.poll();
  }

  async close(): Promise<void> {
    this.isOver = true;
    await this.polling;
  }

  /** Returns the figures of all tasks together, and of each kind of work. */
  figures(): { readonly tasks: Spread; readonly kinds: Readonly<Record<string, Spread>> } {
    const kinds = [...this.durationsMs].sort(([one], [other]) => (one < other ? -1 : 1));
    return {
      tasks: spreadOf(kinds.flatMap(([kind, took]) => (beside.has(kind) ? [] : took))),
      kinds: Object.fromEntries(kinds.map(([kind, took]) => [kind, spreadOf(took)])),
    };
  }

  private async poll(): Promise<void> {
    while (!this.isOver) {
      const since = Date.now();
      const found = await this.scene.rows
        .sql<{ kind: string; key: string }>(`select w.kind, w.key from (${held}) w where ${isGone('w.owner')}`)
        .catch(() => undefined);
      if (found) this.compare(new Map(found.map(({ kind, key }) => [`${kind} ${key}`, kind])), since);
      await sleep(pollMs);
    }
  }

  private compare(orphans: ReadonlyMap<string, string>, now: number): void {
    const { slots } = this.scene.fleet;
    for (const taker of ['api', 'worker'] as const)
      if (!slots.some(({ role, isReady }) => isReady && [taker, 'all'].includes(role))) this.missingUntil[taker] = now;
    for (const [key, kind] of orphans) if (!this.orphans.has(key)) this.orphans.set(key, { kind, since: now });
    for (const [key, { kind, since }] of this.orphans) {
      if (orphans.has(key)) continue;
      this.orphans.delete(key);
      if (this.missingUntil[takerOf(kind)] >= since || !this.isCalm(since, now)) continue;
      this.durationsMs.set(kind, [...(this.durationsMs.get(kind) ?? []), now - since]);
    }
  }

  private isCalm(since: number, now: number): boolean {
    return this.scene.history.faults.every(
      ({ kind, at, until = Infinity }) => kind === 'kill' || at > now || until + calmMs < since,
    );
  }
}

/**
 * Returns the role that takes over this kind of work: API processes lease mailbox tasks, workers take all other work.
 */
function takerOf(kind: string): 'api' | 'worker' {
  return kind === 'box' ? 'api' : 'worker';
}

function spreadOf(durationsMs: readonly number[]): Spread {
  const of = (share: number): number => percentile(durationsMs, share);
  return { count: durationsMs.length, p50: of(0.5), p99: of(0.99), max: of(1) };
}
