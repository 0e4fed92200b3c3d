import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../support/fuzz/random.js';
import type { Slot } from './fleet.js';
import type { Fault } from './history.js';
import type { Scene } from './scene.js';
import type { Postgres, Redis } from './servers.js';

export type FaultKind = keyof typeof faults;

/** What a run breaks, and how often. */
export type Plan = Partial<Record<FaultKind, number>>;

export interface Broken {
  readonly scene: Scene;
  readonly postgres?: Postgres;
  readonly redis?: Redis;
}

/** The faults in the order that the seed gives them, spread over the run. */
export function scheduleOf(plan: Plan, random: Random): FaultKind[] {
  const all = (Object.entries(plan) as [FaultKind, number][]).flatMap(([kind, count]) =>
    Array<FaultKind>(count).fill(kind),
  );
  return random.shuffled(all);
}

/** Breaks something, and mends it. Resolves when the next fault may come; what takes longer goes on behind it. */
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
  /** kill -9, and the next life at once. */
  kill: async ({ scene }: Broken, fault: Fault) => {
    const slot = await readySlot(scene);
    fault.until = Date.now() + 500;
    await slot.kill();
    restart(slot);
  },
  /** A pause longer than the lease of a task: the work goes on elsewhere, and the process wakes as if nothing had been. */
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
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
       and application_name <> 'chaos'`,
    );
    fault.until = Date.now() + 1_500;
    await sleep(1_000);
  },
  /** A deploy of one process. */
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
  /** It is there and says nothing. */
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

/** Everything that was broken is whole again: every process lives and is ready. */
export async function allMended({ fleet }: Scene): Promise<void> {
  await Promise.all(running);
  for (const slot of fleet.slots) if (!slot.isReady) await slot.start();
}

/** A start that fails because the database is away is made again, as every supervisor does. */
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

/** One that is ready; mostly of a role that another one fills meanwhile, so that there is load to break. */
async function readySlot({ fleet, random }: Scene): Promise<Slot> {
  const isBold = random.chance(0.15);
  for (;;) {
    const ready = fleet.slots.filter(({ isReady }) => isReady);
    const spare = ready.filter((slot) => isBold || ready.some((other) => other !== slot && other.role === slot.role));
    if (spare.length > 0) return random.pick(spare);
    await sleep(20);
  }
}
