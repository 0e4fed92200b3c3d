import { Injectable } from '@nestjs/common';
import { RialtoError } from '../kernel/errors.js';
import { AgentCredentials } from './agent-credentials.js';
import type { AgentEntity } from './agents/agent.entity.js';
import type { Credential } from './registry.types.js';

/** Turns a credential into request headers. `agentId` identifies the agent for which a token is cached or fetched. */
export type ProofReader = (agentId: string, credential: Credential) => Promise<Record<string, string>>;

type Row = Pick<AgentEntity, 'id' | 'orgId' | 'url' | 'cardUrl' | 'credential'>;

/**
 * Turns credentials of agents into headers for requests of their cards. The module that calls agents sets the reader
 * at start.
 */
@Injectable()
export class AgentProofs {
  private read: ProofReader = () =>
    Promise.reject(
      new RialtoError('unavailable', { message: 'the gateway is starting and cannot read credentials yet' }),
    );

  constructor(private readonly sealed: AgentCredentials) {}

  from(read: ProofReader): void {
    this.read = read;
  }

  /** Returns the headers for an agent that is being registered; undefined without a credential. */
  given(credential: Credential | undefined) {
    return credential && (() => this.read('being registered', credential));
  }

  /**
   * Returns the headers for a registered agent; undefined without a credential, or when its card has another origin
   * than its URL.
   */
  headersOf(row: Row) {
    if (row.credential === null || new URL(row.cardUrl).origin !== new URL(row.url).origin) return undefined;
    return () => this.read(row.id, this.sealed.openCredential(row)!);
  }
}
