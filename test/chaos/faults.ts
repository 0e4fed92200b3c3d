import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../support/fuzz/random.js';
import type { Slot } from './processes/fleet.js';
import type { Fault } from './history.js';
import type { Scene } from './scene.js';
import type { Postgres, Redis } from './processes/servers.js';

export type FaultKind = keyof typeof faults;

/** The faults of a run, with their counts. */
export type Plan = Partial<Record<FaultKind, number>>;

export interface Broken {
  readonly scene: Scene;
  readonly postgres?: Postgres;
  readonly redis?: Redis;
}

/** Returns the faults of the plan in a random order that depends on the seed. */
export function scheduleOf(plan: Plan, random: Random): FaultKind[] {
  const all = (Object.entries(plan) as [FaultKind, number][]).flatMap(([kind, count]) =>
    Array<FaultKind>(count).fill(kind),
  );
  return random.shuffled(all);
}

/** Causes a fault and repairs it. Resolves when the next fault may come; longer repairs continue in the background. */
export async function strike(kind: FaultKind, broken: Broken): Promise<void> {
  const fault: Fault = { kind, what: '', at: Date.now() };
  broken.scene.history.faults.push(fault);
  try {
    await faults[kind](broken, fault);
  } finally {
    fault.until ??= Date.now();
  }
}

const faults = {
  /** Kills with SIGKILL and restarts at once. */
  kill: async ({ scene }: Broken, fault: Fault) => {
    const slot = await readySlot(scene);
    fault.until = Date.now() + 500;
    await slot.kill();
    restart(slot);
  },
  /**
   * Pauses a process for longer than the lease of a task. Another process takes over its work, and the paused one
   * continues later without notice.
   */
  freeze: async ({ scene }: Broken, fault: Fault) => {
    const slot = await readySlot(scene);
    slot.freeze();
    fault.until = Infinity;
    background(async () => {
      await sleep(17_000);
      slot.thaw();
      fault.until = Date.now() + 2_000;
    });
    await sleep(500);
  },
  terminate: async ({ scene }: Broken, fault: Fault) => {
    await scene.rows.sql(
      `select pg_terminate_backend(pid)
       from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and application_name <> 'chaos'`,
    );
    fault.until = Date.now() + 1_500;
    await sleep(1_000);
  },
  /** Deploys one process. */
  roll: async ({ scene }: Broken) => {
    const slot = await readySlot(scene);
    slot.isLeaving = true;
    await slot.kill('SIGTERM');
    slot.isLeaving = false;
    restart(slot);
  },
  postgres: async ({ postgres }: Broken, fault: Fault) => {
    await postgres!.crash();
    await sleep(300);
    await postgres!.up();
    fault.until = Date.now() + 2_000;
    await sleep(1_500);
  },
  redisKill: async ({ redis }: Broken) => {
    await redis!.kill();
    await sleep(800);
    await redis!.up();
  },
  redisFlush: async ({ redis }: Broken) => redis!.command('FLUSHALL'),
  /** Redis accepts connections but does not answer. */
  redisFreeze: async ({ redis }: Broken) => {
    redis!.freeze();
    await sleep(2_000);
    redis!.thaw();
  },
};

const running = new Set<Promise<void>>();

function background(work: () => Promise<void>): void {
  const run = work().finally(() => running.delete(run));
  running.add(run);
}

/** Waits for all repairs and starts every process that is not ready. */
export async function allMended({ fleet }: Scene): Promise<void> {
  await Promise.all(running);
  for (const slot of fleet.slots) if (!slot.isReady) await slot.start();
}

/** Repeats a start that fails because the database is down, as every supervisor does. */
function restart(slot: Slot): void {
  background(async () => {
    for (let tries = 0; ; tries++) {
      try {
        return await slot.start();
      } catch (error) {
        if (tries >= 20) throw error;
        await sleep(300);
      }
    }
  });
}

/** Picks a ready process. Most of the time, another process of its role is also ready, so that the load continues. */
async function readySlot({ fleet, random }: Scene): Promise<Slot> {
  const mayBeLast = random.chance(0.15);
  for (;;) {
    const ready = fleet.slots.filter(({ isReady }) => isReady);
    const spare = ready.filter(
      (slot) => mayBeLast || ready.some((other) => other !== slot && other.role === slot.role),
    );
    if (spare.length > 0) return random.pick(spare);
    await sleep(20);
  }
}
