import type { Json, JsonObject } from '../../kernel/json.js';

const firstBeatMs = 1_000;
const beatMs = 5_000;
/** So small that what a server says of its own progress comes after it: progress only grows (MCP, progress). */
const beatStep = 0.001;

/** Hands on the progress that an MCP server tells of a call. */
export type RelayProgress = (progress: JsonObject) => void;

/**
 * Runs a call and says now and then that it is still going on, when its caller asked to be told: clients give up on silence,
 * and each word resets their clock. What the call itself says of its progress takes the place of that.
 */
export function withHeartbeat<Result>(
  token: Json | undefined,
  notify: (progress: JsonObject) => void,
  work: (relay: RelayProgress) => Promise<Result>,
): Promise<Result> {
  return isToken(token) ? beating(token, notify, work) : work(() => undefined);
}

/** What progress is told by. */
export function isToken(token: Json | undefined): token is string | number | bigint {
  return typeof token === 'string' || typeof token === 'number' || typeof token === 'bigint';
}

async function beating<Result>(
  token: string | number | bigint,
  notify: (progress: JsonObject) => void,
  work: (relay: RelayProgress) => Promise<Result>,
): Promise<Result> {
  let last = 0;
  let isRelayed = false;
  const say = (progress: number, more: JsonObject): void => {
    last = progress;
    notify({ ...more, progressToken: token, progress });
  };
  const relay = ({ progress, ...more }: JsonObject): void => {
    if (typeof progress !== 'number' || (isRelayed || last > 0 ? progress <= last : progress < 0)) return;
    isRelayed = true;
    say(progress, more);
  };
  const beat = (): void => {
    if (isRelayed) return;
    say(last + beatStep, { message: 'the agent is still working' });
    timer = setTimeout(beat, beatMs);
  };
  let timer = setTimeout(beat, firstBeatMs);
  try {
    return await work(relay);
  } finally {
    clearTimeout(timer);
  }
}
