import type { Json, JsonObject } from '../../kernel/json.js';

const firstBeatMs = 1_000;
const beatMs = 5_000;
/** Small enough that the progress of the server comes after it: progress must only grow (MCP, progress). */
const beatStep = 0.001;

/** Relays the progress that an MCP server reports for a call. */
export type RelayProgress = (progress: JsonObject) => void;

/**
 * Runs a call and reports regularly that it is still running, when its caller sent a progress token: clients time out
 * without messages, and each message restarts their timer. Progress of the call itself replaces these reports.
 */
export function withHeartbeat<Result>(
  token: Json | undefined,
  notify: (progress: JsonObject) => void,
  work: (relay: RelayProgress) => Promise<Result>,
): Promise<Result> {
  return isToken(token) ? runWithBeats(token, notify, work) : work(() => undefined);
}

/** True for a value that can be a progress token. */
export function isToken(token: Json | undefined): token is string | number | bigint {
  return typeof token === 'string' || typeof token === 'number' || typeof token === 'bigint';
}

async function runWithBeats<Result>(
  token: string | number | bigint,
  notify: (progress: JsonObject) => void,
  work: (relay: RelayProgress) => Promise<Result>,
): Promise<Result> {
  let last = 0;
  let isRelayed = false;
  const report = (progress: number, more: JsonObject): void => {
    last = progress;
    notify({ ...more, progressToken: token, progress });
  };
  const relay = ({ progress, ...more }: JsonObject): void => {
    if (typeof progress !== 'number' || (isRelayed || last > 0 ? progress <= last : progress < 0)) return;
    isRelayed = true;
    report(progress, more);
  };
  const beat = (): void => {
    if (isRelayed) return;
    report(last + beatStep, { message: 'the agent is still working' });
    timer = setTimeout(beat, beatMs);
  };
  let timer = setTimeout(beat, firstBeatMs);
  try {
    return await work(relay);
  } finally {
    clearTimeout(timer);
  }
}
