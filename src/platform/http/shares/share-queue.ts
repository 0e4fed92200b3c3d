import type { EventEmitter } from 'node:events';
import { callerOf, type CallContext } from '../../../kernel/call-context.js';
import type { RialtoError } from '../../../kernel/errors.js';
import { Shares, type Payer, type ShareLimits, type ShareScope } from './shares.js';

/** Admits work while shares are free; further work waits for its turn. */
export class ShareQueue {
  private readonly shares: Shares;

  /** @param refusal makes the error of a caller that waited too long. */
  constructor(
    limits: ShareLimits,
    private readonly refusal: (scope: ShareScope) => RialtoError,
  ) {
    this.shares = new Shares(limits);
  }

  /**
   * Resolves with a function that releases the share. Throws the refusal after `timeoutMs` milliseconds.
   * @param leaving its `close` event ends the wait with undefined: the caller is gone, and no share is taken.
   */
  waitForShare(
    payer: Payer,
    amount: number,
    leaving?: EventEmitter,
    timeoutMs?: number,
  ): Promise<(() => void) | undefined> {
    const release = this.shares.takeShare(payer, amount);
    if (release) return Promise.resolve(release);
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(late);
        leave();
        leaving?.off('close', gone);
      };
      const gone = (): void => {
        settle();
        resolve(undefined);
      };
      const { leave } = this.shares.wait(payer, amount, (taken) => {
        settle();
        resolve(taken);
      });
      const refuse = (): void => {
        settle();
        reject(this.refusal(this.shares.full(payer, amount) ?? 'process'));
      };
      const late = timeoutMs === undefined ? undefined : setTimeout(refuse, timeoutMs);
      leaving?.once('close', gone);
    });
  }
}

/** The account that a caller's share is charged to. */
export function payerOf({ org, principal }: CallContext): Payer {
  return { org: org.id, principal: callerOf(principal) };
}
