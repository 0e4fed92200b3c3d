import type { X509Certificate } from 'node:crypto';
import type { OrgId } from '../../kernel/ids.js';
import { lineOf } from '../checkpoint.js';
import type { AuditTimestampStore } from './audit-timestamp.store.js';
import { isTrusted, verifyTimestamp, type Timestamp } from './timestamp-token.js';

const batch = 200;

/** Reads checkpoints with their timestamps: from the database, or from an export. */
export type TimestampSource = Pick<AuditTimestampStore, 'stampedAfter' | 'firstWithoutCheckpoint'>;

/** A timestamp that has no checkpoint or does not fit it, or that no given authority made. */
interface TimestampFault {
  readonly verdict: 'changed' | 'unverifiable';
  readonly sequence: number;
  readonly reason: string;
}

/** Result for the timestamps of an org's checkpoints. */
export interface StampedOrg {
  /** Number of timestamps that are right. */
  checked: number;
  /** Number of the newest checkpoint with one, and the time that its authority states; null without one. */
  lastNumber: number | null;
  lastAt: string | null;
  /**
   * Longest time from a checkpoint to the first timestamp of it or of a later one, in seconds. A timestamp covers the
   * earlier checkpoints too, because each contains the hash of the one before it.
   */
  maxDelaySeconds: number;
  /** False when no authority was given, so that a timestamp may be of any. */
  readonly isAuthorityChecked: boolean;
  fault?: TimestampFault;
}

/** Verifies the timestamps of an org without a connection to their authority. Undefined without timestamps. */
export async function verifyTimestamps(
  source: TimestampSource,
  org: OrgId,
  authorities?: readonly X509Certificate[],
): Promise<StampedOrg | undefined> {
  const isAuthorityChecked = authorities !== undefined;
  const found: StampedOrg = { checked: 0, lastNumber: null, lastAt: null, maxDelaySeconds: 0, isAuthorityChecked };
  let [last, uncoveredSince]: [number, string | undefined] = [0, undefined];
  for (;;) {
    const page = await source.stampedAfter(org, last, batch);
    for (const { checkpoint, token } of page) {
      last = checkpoint.number;
      uncoveredSince ??= checkpoint.at;
      if (!token) continue;
      const answer = check(token, lineOf(checkpoint), authorities);
      if ('verdict' in answer) {
        const reason = `the timestamp of checkpoint ${last}: ${answer.reason}`;
        if (found.fault?.verdict !== 'changed') found.fault = { ...answer, sequence: checkpoint.sequence, reason };
        continue;
      }
      found.checked++;
      [found.lastNumber, found.lastAt] = [last, answer.at.toISOString()];
      const delay = Math.round((answer.at.getTime() - Date.parse(uncoveredSince)) / 1_000);
      found.maxDelaySeconds = Math.max(found.maxDelaySeconds, delay);
      uncoveredSince = undefined;
    }
    if (page.length < batch) break;
  }
  const lone = await source.firstWithoutCheckpoint(org);
  if (lone && !(found.fault?.verdict === 'changed' && found.fault.sequence <= lone.sequence)) {
    const reason = `the timestamp of checkpoint ${lone.number} has no checkpoint`;
    found.fault = { verdict: 'changed', sequence: lone.sequence, reason };
  }
  return found.checked > 0 || found.fault ? found : undefined;
}

function check(
  token: Buffer,
  line: string,
  authorities?: readonly X509Certificate[],
): Timestamp | Omit<TimestampFault, 'sequence'> {
  try {
    const timestamp = verifyTimestamp(token, line);
    const isKnown = !authorities || isTrusted(timestamp, authorities);
    return isKnown ? timestamp : { verdict: 'unverifiable', reason: 'no given authority made it' };
  } catch (error) {
    return { verdict: 'changed', reason: (error as Error).message };
  }
}
