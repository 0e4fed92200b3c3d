import { hash } from 'node:crypto';
import { canonicalJson } from '../kernel/canonical-json.js';

/** The hash before the first event of an org. */
export const genesisHash = '0'.repeat(64);

/** `hex(sha256(canonicalJson(event) + prevHash))`: anyone can recompute it (RE-83). */
export function chainHash(event: unknown, prevHash: string): string {
  return hash('sha256', canonicalJson(event) + prevHash, 'hex');
}

/** One sealed event as stored; `event` is null when its row is gone. */
export interface ChainLink {
  readonly sequence: number;
  readonly prevHash: string;
  readonly hash: string;
  readonly event: unknown;
}

/** Where a walk along the chain stands. */
export interface ChainState {
  readonly sequence: number;
  readonly hash: string;
}

/** Walks links in order from a state; returns the new state, or the first sequence that does not hold. */
export function walkChain(links: readonly ChainLink[], from: ChainState): ChainState | { brokenAt: number } {
  let state = from;
  for (const link of links) {
    const expected = state.sequence + 1;
    if (link.sequence !== expected) return { brokenAt: expected };
    if (link.prevHash !== state.hash || link.event === null || chainHash(link.event, link.prevHash) !== link.hash)
      return { brokenAt: expected };
    state = { sequence: link.sequence, hash: link.hash };
  }
  return state;
}
