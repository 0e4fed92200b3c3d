import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import type { JsonObject } from '../../kernel/json.js';
import { VerbBus, type VerbCall } from '../../kernel/verb-bus.js';
import { TxRunner, type Tx } from '../database/tx.js';
import { Ledger } from './ledger.js';

/**
 * Runs administrative operations as acts: each is authorized on the org, then executed and audited in one
 * transaction.
 */
@Injectable()
export class AdminActs {
  constructor(
    private readonly verbs: VerbBus,
    private readonly txs: TxRunner,
    private readonly ledger: Ledger,
  ) {}

  /**
   * @param verb names the operation, e.g. `agent.register`.
   * @param args facts for policies and the audit log; they never contain a secret.
   */
  write<Result>(ctx: CallContext, verb: string, args: JsonObject, work: (tx: Tx) => Promise<Result>): Promise<Result> {
    return this.prepareAndWrite(ctx, verb, args, () => Promise.resolve(), work);
  }

  /** Like `write`, for work without a transaction: it only reads, or its effect is not in the database. */
  record<Result>(ctx: CallContext, verb: string, args: JsonObject, work: () => Promise<Result>): Promise<Result> {
    return this.prepareAndWrite(ctx, verb, args, work, (_tx, result) => Promise.resolve(result));
  }

  /**
   * Like `write`, with a first step outside the transaction for slow work, such as fetching a card or compiling a
   * policy.
   */
  prepareAndWrite<Prepared, Result>(
    ctx: CallContext,
    verb: string,
    args: JsonObject,
    prepare: () => Promise<Prepared>,
    work: (tx: Tx, prepared: Prepared) => Promise<Result>,
  ): Promise<Result> {
    const resource = { type: 'Org', id: ctx.org.slug } as const;
    return this.perform({ ctx, verb, action: 'admin_write', resource, args }, prepare, work);
  }

  /**
   * Like `prepareAndWrite`, for objects that callers administer themselves: the resource in `call` is authorized
   * instead of the org.
   */
  perform<Prepared, Result>(
    call: VerbCall,
    prepare: () => Promise<Prepared>,
    work: (tx: Tx, prepared: Prepared) => Promise<Result>,
  ): Promise<Result> {
    return this.verbs.around(call, async (act) => {
      const prepared = await prepare();
      return this.txs.run(async (tx) => {
        const result = await work(tx, prepared);
        await this.ledger.completeIn(tx, act);
        return result;
      });
    });
  }

  read<Result>(ctx: CallContext, verb: string, work: () => Promise<Result>): Promise<Result> {
    return this.verbs.around({ ctx, verb, action: 'admin_read', resource: { type: 'Org', id: ctx.org.slug } }, work);
  }
}
