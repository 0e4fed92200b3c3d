import { Injectable } from '@nestjs/common';
import type { AgentId, OrgId } from '../kernel/ids.js';
import { Vault, type Secret } from '../platform/secrets/vault.js';
import { PublishedAgentStore } from './published-agent.store.js';

interface Owner {
  readonly id: AgentId;
  readonly orgId: OrgId;
}

/** The secrets of executors: sealed in the rows of their agents, opened at the last moment. */
@Injectable()
export class ExecutorSecrets {
  constructor(
    private readonly store: PublishedAgentStore,
    private readonly vault: Vault,
  ) {}

  /** What an `http` executor signs its calls with (`whsec_…`), and a `mailbox` is opened by (`mbx_…`); undefined for others. */
  async of(id: AgentId): Promise<Secret | undefined> {
    const found = await this.store.sealedSecret(id);
    return found && this.open({ id, orgId: found.orgId }, found.sealed);
  }

  open(owner: Owner, sealed: string): Secret {
    return this.vault.open(sealed, placeOf(owner));
  }

  seal(owner: Owner, secret: string): string {
    return this.vault.seal(secret, placeOf(owner));
  }
}

function placeOf({ id, orgId }: Owner) {
  return { table: 'published_agents', row: id, org: orgId };
}
