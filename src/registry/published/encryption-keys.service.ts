import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { isReader } from '../../protocol/a2a/media-types.js';
import { keysAfter } from './encryption-keys.js';
import { PublishedAgentStore } from './published-agent.store.js';
import type { KeysView, PublishKeys } from './publishing.types.js';

/** Publishes the public keys of agents for end-to-end encryption. The gateway never has a private one. */
@Injectable()
export class EncryptionKeysService {
  constructor(
    private readonly admin: AdminActs,
    private readonly store: PublishedAgentStore,
  ) {}

  /**
   * Adds keys to those of an agent, also of a declared one. Throws `not_found`, `conflict` for a key that no published
   * key endorses, and `unprocessable`.
   */
  publish(ctx: CallContext, idOrName: string, { keys: given, reset = false }: PublishKeys): Promise<KeysView> {
    const args = { agent: idOrName, kids: given.map(({ kid }) => kid), reset };
    return this.admin.write(ctx, 'published.publish-keys', args, async (tx) => {
      await this.store.lockOrg(tx, ctx.org.id);
      const row = await this.store.findOrFail(ctx.org.id, idOrName, tx);
      if (isReader(row.executor))
        throw new RialtoError('unprocessable', {
          message: `an agent with the executor "${row.executor.kind}" takes no encrypted messages, so it has no keys`,
        });
      const keys = keysAfter(row.keys, given, reset);
      if (keys.length !== row.keys.length || reset) await this.store.update(tx, row.id, { keys });
      return { keys: [...keys] };
    });
  }
}
