import { Injectable } from '@nestjs/common';
import { RialtoError } from '../kernel/errors.js';
import { AgentCredentials } from './agent-credentials.js';
import type { AgentEntity } from './agents/agent.entity.js';
import type { Credential } from './registry.types.js';

/** A credential as headers; `agentId` is whose token it is where one has to be fetched. */
export type ProofReader = (agentId: string, credential: Credential) => Promise<Record<string, string>>;

type Row = Pick<AgentEntity, 'id' | 'orgId' | 'url' | 'cardUrl' | 'credential'>;

/** Credentials of agents as headers for their cards. The room that calls agents gives the reader when it starts. */
@Injectable()
export class AgentProofs {
  private read: ProofReader = () =>
    Promise.reject(new RialtoError('unavailable', { message: 'no credential can be shown yet' }));

  constructor(private readonly sealed: AgentCredentials) {}

  from(read: ProofReader): void {
    this.read = read;
  }

  /** Of an agent that is being registered; undefined without a credential. */
  given(credential: Credential | undefined) {
    return credential && (() => this.read('being registered', credential));
  }

  /** Of a registered agent, for the origin that its credential was given for. */
  of(row: Row) {
    if (row.credential === null || new URL(row.cardUrl).origin !== new URL(row.url).origin) return undefined;
    return () => this.read(row.id, this.sealed.open(row)!);
  }
}
