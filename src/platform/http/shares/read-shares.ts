import { Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import { finalize, from, mergeMap, of, type Observable } from 'rxjs';
import type { CallContext } from '../../../kernel/call-context.js';
import { RialtoError } from '../../../kernel/errors.js';
import type { DoorRequest, DoorResponse } from '../http.types.js';
import type { ShareScope } from './shares.js';
import { payerOf, ShareQueue } from './share-queue.js';

/** Connections that reads may hold at once. It is less than the pool has, so that other work gets some. */
const limits = { principal: 6, org: 12, process: Infinity };
const timeoutMs = 10_000;

/** Limits the pool connections that the reads of one caller, and of one org, take at once; further reads wait. */
@Injectable()
export class ReadShares implements NestInterceptor {
  private readonly queue = new ShareQueue(limits, tooMany);

  /** Limits GET requests of controllers. A caller that leaves while it waits starts no read. */
  intercept(context: ExecutionContext, next: CallHandler<unknown>): Observable<unknown> {
    const http = context.switchToHttp();
    const { method, ctx } = http.getRequest<DoorRequest>();
    if (method !== 'GET' || !ctx) return next.handle();
    const entered = this.queue.waitForShare(payerOf(ctx), 1, http.getResponse<DoorResponse>(), timeoutMs);
    return from(entered).pipe(mergeMap((release) => (release ? next.handle().pipe(finalize(release)) : of(undefined))));
  }

  /**
   * Limits a read of another door that takes this many connections. Throws `rate_limited` after 10 s without a turn.
   */
  async around<T>(ctx: CallContext, connections: number, read: () => Promise<T>): Promise<T> {
    const release = await this.queue.waitForShare(payerOf(ctx), connections, undefined, timeoutMs);
    try {
      return await read();
    } finally {
      release?.();
    }
  }
}

function tooMany(scope: ShareScope): RialtoError {
  return new RialtoError('rate_limited', {
    message: `the ${scope} has too many reads running`,
    data: { retryAfterSeconds: 5 },
  });
}
