import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../../kernel/call-context.js';
import { RialtoError } from '../../../kernel/errors.js';
import type { DoorRequest } from '../http.types.js';
import type { Payer, ShareScope } from './shares.js';
import { payerOf, ShareQueue } from './share-queue.js';

const mebibyte = 1_048_576;
/** An answer takes about three times its length until it has left: its text, and what of it waits at the socket. */
const limits = { principal: 16 * mebibyte, org: 48 * mebibyte, process: 96 * mebibyte };
/** Smaller answers are not counted: what they hold is bounded by the number of connections. */
const counted = 65_536;
const patienceMs = 5_000;

/** Bounds what answers that are being written hold of this process (X2.5). */
@Injectable()
export class AnswerBudget {
  private readonly turnstile = new ShareQueue(limits, tooMuch);

  /**
   * Waits for room for an answer of so many bytes. Held until the response is over. Throws `rate_limited` when the answers of its
   * principal or its org, `unavailable` when those of all leave none for 5 s.
   */
  async admit(response: ServerResponse, bytes: number): Promise<void> {
    if (bytes < counted) return;
    const release = await this.turnstile.enter(payerAt(response), bytes, response, patienceMs);
    if (response.destroyed) release();
    else response.once('close', release);
  }

  /** The same for a part of a stream, which waits for as long as its reader stays; the result gives the share back. */
  async part(response: ServerResponse, bytes: number, ctx: CallContext): Promise<() => void> {
    return bytes < counted ? () => undefined : this.turnstile.enter(payerOf(ctx), bytes, response);
  }
}

function tooMuch(scope: ShareScope): RialtoError {
  const data = { retryAfterSeconds: 5 };
  if (scope === 'process')
    return new RialtoError('unavailable', { message: 'too many large answers are being written', data });
  const hint = 'read the answers that are open, or ask for less: shorter history, smaller pages';
  return new RialtoError('rate_limited', { message: `the ${scope} has too many large answers open`, hint, data });
}

function payerAt(response: ServerResponse): Payer {
  const { ctx, socket } = response.req as DoorRequest;
  return ctx ? payerOf(ctx) : { principal: socket.remoteAddress ?? '', org: '' };
}
