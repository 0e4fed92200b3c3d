import type { EventEmitter } from 'node:events';
import { callerOf, type CallContext } from '../../../kernel/call-context.js';
import type { RialtoError } from '../../../kernel/errors.js';
import { Shares, type Payer, type ShareLimits, type ShareScope } from './shares.js';

/** Lets in as many at once as there are shares for; others wait their turn. */
export class ShareQueue {
  private readonly shares: Shares;

  /** @param refusal what they are told who waited in vain. */
  constructor(
    limits: ShareLimits,
    private readonly refusal: (scope: ShareScope) => RialtoError,
  ) {
    this.shares = new Shares(limits);
  }

  /**
   * Resolves with what gives the share back. Throws the refusal after so many milliseconds.
   * @param leaving its `close` ends the waiting: nobody is there any more, and nothing is taken.
   */
  enter(payer: Payer, amount: number, leaving?: EventEmitter, mostMs?: number): Promise<() => void> {
    const release = this.shares.take(payer, amount);
    if (release) return Promise.resolve(release);
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(late);
        leave();
        leaving?.off('close', gone);
      };
      const gone = (): void => {
        settle();
        resolve(() => undefined);
      };
      const { leave } = this.shares.wait(payer, amount, (taken) => {
        settle();
        resolve(taken);
      });
      const refuse = (): void => {
        settle();
        reject(this.refusal(this.shares.full(payer, amount) ?? 'process'));
      };
      const late = mostMs === undefined ? undefined : setTimeout(refuse, mostMs);
      leaving?.once('close', gone);
    });
  }
}

/** A caller pays for what it asks for. */
export function payerOf({ org, principal }: CallContext): Payer {
  return { org: org.id, principal: callerOf(principal) };
}
