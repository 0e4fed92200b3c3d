import type { Plan } from './faults.js';

/** The size of a run. */
export interface Form {
  readonly name: 'brief' | 'short' | 'long';
  /** The command line flags, without the seed. */
  readonly flags: string;
  readonly seed: number;
  /** Names of the parts to run; all when empty. */
  readonly only: readonly string[];
  /** The program of an earlier version, for deployments from it and back to it. When absent, this build. */
  readonly before?: string;
  readonly plans: readonly Plan[];
  readonly queuePlan: Plan;
  readonly embeddedKills: number;
  /** Average milliseconds between two faults. */
  readonly paceMs: number;
  readonly outageSeconds: number;
  readonly races: number;
  readonly rolls: number;
  /** Number of defects that run at the same time. */
  readonly lanes: number;
  /**
   * Limits in seconds after which a plan gets no more faults, and no more defects are planted. Only slow machines reach
   * them; the figures show the rest as `left`.
   */
  readonly mostSeconds: { readonly plan: number; readonly defects: number };
}

const short = {
  name: 'short',
  // The first plan has kills only, so that it measures takeovers.
  plans: [
    { kill: 40 },
    { kill: 42, redisKill: 4, redisFlush: 4, redisFreeze: 2, postgres: 5, terminate: 4, roll: 6, freeze: 2 },
  ],
  queuePlan: { kill: 14, terminate: 2, postgres: 1, roll: 2 },
  embeddedKills: 4,
  paceMs: 700,
  outageSeconds: 60,
  races: 10_000,
  rolls: 3,
  lanes: 3,
  mostSeconds: { plan: 210, defects: 300 },
} as const;

const long = {
  name: 'long',
  plans: [
    { kill: 400 },
    {
      kill: 1_500,
      redisKill: 80,
      redisFlush: 80,
      redisFreeze: 40,
      postgres: 100,
      terminate: 100,
      roll: 200,
      freeze: 60,
    },
  ],
  queuePlan: { kill: 100, terminate: 20, postgres: 10, roll: 20, freeze: 4 },
  embeddedKills: 50,
  paceMs: 700,
  outageSeconds: 600,
  races: 200_000,
  rolls: 100,
  lanes: 2,
  mostSeconds: { plan: Infinity, defects: Infinity },
} as const;

/** Checks the harness itself, in a minute or two. */
const brief = {
  name: 'brief',
  plans: [
    { kill: 8 },
    { kill: 4, redisKill: 1, redisFlush: 1, redisFreeze: 1, postgres: 1, terminate: 1, roll: 1, freeze: 1 },
  ],
  queuePlan: { kill: 4, terminate: 1, postgres: 1, roll: 1 },
  embeddedKills: 1,
  paceMs: 700,
  outageSeconds: 10,
  races: 500,
  rolls: 1,
  lanes: 2,
  mostSeconds: { plan: Infinity, defects: Infinity },
} as const;

/**
 * Parses `--brief`, `--long`, `--seed=7`, `--only=chaos,races`, `--before=/path/to/dist/src/main.js`. Throws for
 * anything else.
 */
export function formOf(args: readonly string[]): Form {
  const values = new Map<string, string>();
  for (const arg of args) {
    const [, name, value = ''] = /^--(brief|long|seed|only|before)(?:=(.*))?$/.exec(arg) ?? [];
    if (name === undefined)
      throw new Error(`unknown flag ${arg}; known flags are --brief, --long, --seed=, --only= and --before=`);
    values.set(name, value);
  }
  const flags = args.filter((arg) => !arg.startsWith('--seed')).join(' ');
  const seed = Number(values.get('seed') ?? Math.floor(Math.random() * 1e9));
  const only = values.get('only')?.split(',') ?? [];
  return {
    ...(values.has('long') ? long : values.has('brief') ? brief : short),
    flags,
    seed,
    only,
    before: values.get('before'),
  };
}
