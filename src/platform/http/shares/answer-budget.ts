import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../../kernel/call-context.js';
import { RialtoError } from '../../../kernel/errors.js';
import type { DoorRequest } from '../http.types.js';
import type { Payer, ShareScope } from './shares.js';
import { payerOf, ShareQueue } from './share-queue.js';

const mebibyte = 1_048_576;
/** An answer takes about three times its length until it is sent: its text, and the part that waits at the socket. */
const limits = { principal: 16 * mebibyte, org: 48 * mebibyte, process: 96 * mebibyte };
/** Smaller answers are not counted: the number of connections bounds their memory. */
const minCountedBytes = 65_536;
const timeoutMs = 5_000;

/** Limits the memory of the answers that are being written. */
@Injectable()
export class AnswerBudget {
  private readonly queue = new ShareQueue(limits, tooMuch);

  /**
   * Waits until an answer of this size may be written; its share is held until the response is closed. Throws after 5
   * s: `rate_limited` when the answers of the principal or its org use up their share, `unavailable` when the answers
   * of all do.
   */
  async waitForShare(response: ServerResponse, bytes: number): Promise<void> {
    if (bytes < minCountedBytes) return;
    const release = await this.queue.waitForShare(payerAt(response), bytes, response, timeoutMs);
    if (!release) return;
    if (response.destroyed) release();
    else response.once('close', release);
  }

  /**
   * The same for an answer that is sent on a connection with many others: it is counted also when it is small, and the
   * returned function releases its share. Undefined when the caller has left.
   */
  waitForReleasable(response: ServerResponse, bytes: number, ctx: CallContext): Promise<(() => void) | undefined> {
    return this.queue.waitForShare(payerOf(ctx), bytes, response, timeoutMs);
  }

  /**
   * The same for a part of a stream, which waits as long as its reader stays. The returned function releases the
   * share; undefined when there is nothing to release.
   */
  async part(response: ServerResponse, bytes: number, ctx: CallContext): Promise<(() => void) | undefined> {
    return bytes < minCountedBytes ? undefined : this.queue.waitForShare(payerOf(ctx), bytes, response);
  }
}

function tooMuch(scope: ShareScope): RialtoError {
  const data = { retryAfterSeconds: 5 };
  if (scope === 'process')
    return new RialtoError('unavailable', { message: 'too many large answers are being written', data });
  const hint = 'read the open answers first, or request less: a shorter history, smaller pages';
  return new RialtoError('rate_limited', { message: `the ${scope} has too many large answers open`, hint, data });
}

function payerAt(response: ServerResponse): Payer {
  const { ctx, socket } = response.req as DoorRequest;
  return ctx ? payerOf(ctx) : { principal: socket.remoteAddress ?? '', org: '' };
}
