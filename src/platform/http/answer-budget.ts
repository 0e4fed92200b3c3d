import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { AnswerShares, type Payer, type ShareScope } from './answer-shares.js';
import type { DoorRequest } from './http.types.js';

const mebibyte = 1_048_576;
/** An answer takes about three times its length until it has left: its text, and what of it waits at the socket. */
const limits = { principal: 16 * mebibyte, org: 48 * mebibyte, process: 96 * mebibyte };
/** Smaller answers are not counted: what they hold is bounded by the number of connections. */
const counted = 65_536;
const patienceMs = 5_000;

/** Bounds what answers that are being written hold of this process (X2.5). */
@Injectable()
export class AnswerBudget {
  private readonly shares = new AnswerShares(limits);

  /**
   * Waits for room for an answer of so many bytes. Held until the response is over. Throws `rate_limited` when the answers of its
   * principal or its org, `unavailable` when those of all leave none for 5 s.
   */
  async admit(response: ServerResponse, bytes: number): Promise<void> {
    if (bytes < counted) return;
    const release = await this.share(response, bytes, payerOf(response), patienceMs);
    if (response.destroyed) release();
    else response.once('close', release);
  }

  /** The same for a part of a stream, which waits for as long as its reader stays; the result gives the share back. */
  async part(response: ServerResponse, bytes: number, ctx: CallContext): Promise<() => void> {
    return bytes < counted ? () => undefined : this.share(response, bytes, payerIn(ctx));
  }

  private share(response: ServerResponse, bytes: number, payer: Payer, mostMs?: number): Promise<() => void> {
    const release = this.shares.take(payer, bytes);
    if (release) return Promise.resolve(release);
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(late);
        leave();
        response.off('close', gone);
      };
      const gone = (): void => {
        settle();
        resolve(() => undefined);
      };
      const { leave } = this.shares.wait(payer, bytes, (taken) => {
        settle();
        resolve(taken);
      });
      const late =
        mostMs === undefined
          ? undefined
          : setTimeout(() => {
              settle();
              reject(tooMuch(this.shares.full(payer, bytes) ?? 'process'));
            }, mostMs);
      response.once('close', gone);
    });
  }
}

function tooMuch(scope: ShareScope): RialtoError {
  const data = { retryAfterSeconds: 5 };
  if (scope === 'process')
    return new RialtoError('unavailable', { message: 'too many large answers are being written', data });
  const hint = 'read the answers that are open, or ask for less: shorter history, smaller pages';
  return new RialtoError('rate_limited', { message: `the ${scope} has too many large answers open`, hint, data });
}

function payerOf(response: ServerResponse): Payer {
  const { ctx, socket } = response.req as DoorRequest;
  return ctx ? payerIn(ctx) : { principal: socket.remoteAddress ?? '', org: '' };
}

function payerIn({ org, principal }: CallContext): Payer {
  return { org: org.id, principal: callerOf(principal) };
}
