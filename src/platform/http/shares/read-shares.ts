import { Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import { finalize, from, mergeMap, type Observable } from 'rxjs';
import type { CallContext } from '../../../kernel/call-context.js';
import { RialtoError } from '../../../kernel/errors.js';
import type { DoorRequest, DoorResponse } from '../http.types.js';
import type { ShareScope } from './shares.js';
import { payerOf, ShareQueue } from './share-queue.js';

/** Connections that reads hold at once: fewer than the pool has, so that others find some (X3.10). */
const limits = { principal: 6, org: 12, process: Infinity };
const patienceMs = 10_000;

/** Bounds how many connections of the pool the lists and looks of one caller, and of one org, take at once; others of theirs wait. */
@Injectable()
export class ReadShares implements NestInterceptor {
  private readonly turnstile = new ShareQueue(limits, tooMany);

  /** GET requests of controllers. */
  intercept(context: ExecutionContext, next: CallHandler<unknown>): Observable<unknown> {
    const http = context.switchToHttp();
    const { method, ctx } = http.getRequest<DoorRequest>();
    if (method !== 'GET' || !ctx) return next.handle();
    const entered = this.turnstile.enter(payerOf(ctx), 1, http.getResponse<DoorResponse>(), patienceMs);
    return from(entered).pipe(mergeMap((release) => next.handle().pipe(finalize(release))));
  }

  /** A read of another door, which takes so many connections. Throws `rate_limited` after 10 s without a turn. */
  async around<T>(ctx: CallContext, connections: number, read: () => Promise<T>): Promise<T> {
    const release = await this.turnstile.enter(payerOf(ctx), connections, undefined, patienceMs);
    try {
      return await read();
    } finally {
      release();
    }
  }
}

function tooMany(scope: ShareScope): RialtoError {
  return new RialtoError('rate_limited', {
    message: `the ${scope} has too many reads under way`,
    data: { retryAfterSeconds: 5 },
  });
}
