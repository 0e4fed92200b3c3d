import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Cursors, pageOf, type Page } from '../../platform/http/cursor.js';
import { newApiKey } from '../auth/api-key.js';
import type { CreateKey, KeyView, NewKeyView } from '../org.types.js';
import { TrustQuotas } from '../trust-quotas.js';
import { ApiKeyStore } from './api-key.store.js';
import type { ApiKeyEntity } from './org.entity.js';

/** Administers the API keys of orgs. */
@Injectable()
export class ApiKeyService {
  constructor(
    private readonly store: ApiKeyStore,
    private readonly admin: AdminActs,
    private readonly cursors: Cursors,
    private readonly quotas: TrustQuotas,
  ) {}

  list(ctx: CallContext, { limit, cursor }: { limit: number; cursor?: string }): Promise<Page<KeyView>> {
    return this.admin.read(ctx, 'key.list', async () => {
      const scope = `keys:${ctx.org.id}`;
      const [after] = cursor ? this.cursors.decode(scope, cursor, 1) : [];
      const rows = await this.store.findPage(ctx.org.id, limit, after);
      return pageOf(rows, limit, keyView, (row) => this.cursors.encode(scope, [row.id]));
    });
  }

  /** Creates a key and returns it once. Throws `rate_limited`. */
  create(ctx: CallContext, input: CreateKey): Promise<NewKeyView> {
    return this.admin.write(ctx, 'key.create', { name: input.name, role: input.role }, async (tx) => {
      const key = newApiKey();
      const row = await this.store.insert(tx, ctx.org.id, input, key);
      if (input.groups.length > 0) await this.quotas.requireGroups(tx, ctx.org.id);
      return { ...keyView(row), key };
    });
  }

  revoke(ctx: CallContext, id: string): Promise<void> {
    return this.admin.write(ctx, 'key.revoke', { key: id }, async (tx) => {
      if (!(await this.store.revoke(tx, ctx.org.id, id)))
        throw new RialtoError('not_found', { message: 'no such key' });
    });
  }
}

function keyView({ id, name, role, groups, agent, hint, expiresAt, revokedAt, createdAt }: ApiKeyEntity): KeyView {
  return {
    id,
    name,
    role,
    groups,
    agent,
    hint,
    expiresAt: expiresAt?.toISOString() ?? null,
    revokedAt: revokedAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
  };
}
