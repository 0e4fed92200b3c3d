import { hash } from 'node:crypto';
import { canonicalJson } from '../kernel/canonical-json.js';
import { isOfEvent, type OpenedFacts } from './personal/personal-facts.js';

/** The previous hash of the first event of an org. */
export const genesisHash = '0'.repeat(64);

/** Returns `hex(sha256(canonicalJson(event) + prevHash))`, which any reader can recompute (RE-83). */
export function chainHash(event: unknown, prevHash: string): string {
  return hash('sha256', canonicalJson(event) + prevHash, 'hex');
}

/** A stored link of the chain. `event` is null when its row is missing. */
export interface ChainLink {
  readonly sequence: number;
  readonly prevHash: string;
  readonly hash: string;
  readonly event: unknown;
  /** Personal facts that an export shows beside the event. */
  readonly opened?: readonly OpenedFacts[];
}

/** Position of a walk along the chain. */
export interface ChainState {
  readonly sequence: number;
  readonly hash: string;
}

/**
 * Verifies links in order from a state. Returns the new state, or the first invalid sequence; `isSound` states that
 * the event there has its own hash, so that only the one before it differs.
 */
export function walkChain(
  links: readonly ChainLink[],
  from: ChainState,
): ChainState | { brokenAt: number; isSound: boolean } {
  let state = from;
  for (const link of links) {
    const expected = state.sequence + 1;
    if (link.sequence !== expected) return { brokenAt: expected, isSound: false };
    const isSound = link.event !== null && chainHash(link.event, link.prevHash) === link.hash;
    if (!isSound || link.prevHash !== state.hash) return { brokenAt: expected, isSound };
    if (link.opened?.some((facts) => !isOfEvent(link.event, facts))) return { brokenAt: expected, isSound: false };
    state = { sequence: link.sequence, hash: link.hash };
  }
  return state;
}

/** Returns the links that continue a chain with these events. */
export function linksOf(
  events: readonly { id: string; event: unknown }[],
  head: ChainState = { sequence: 0, hash: genesisHash },
): (ChainState & { eventId: string; prevHash: string })[] {
  let state = head;
  return events.map(({ id, event }) => {
    const prevHash = state.hash;
    state = { sequence: state.sequence + 1, hash: chainHash(event, prevHash) };
    return { eventId: id, prevHash, ...state };
  });
}
