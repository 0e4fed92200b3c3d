import { Injectable } from '@nestjs/common';
import { assertNever } from '../kernel/never.js';
import { UrlQueries } from '../platform/secrets/url-queries.js';
import { Vault } from '../platform/secrets/vault.js';
import type { AgentEntity } from './agents/agent.entity.js';
import type { Credential } from './registry.types.js';

type Owner = Pick<AgentEntity, 'id' | 'orgId'>;
type Address = Pick<AgentEntity, 'cardUrl' | 'cardQuery'>;
type Sealed = Pick<AgentEntity, 'credential' | 'credentialKind' | 'credentialHint'>;

/** Seals and opens the credentials of registered agents. A credential is opened immediately before it is sent. */
@Injectable()
export class AgentCredentials {
  private readonly queries: UrlQueries;

  constructor(private readonly vault: Vault) {
    this.queries = new UrlQueries(vault);
  }

  sealCredential(owner: Owner, credential: Credential | null): Sealed {
    if (credential === null) return { credential: null, credentialKind: null, credentialHint: null };
    return {
      credential: this.vault.seal(JSON.stringify(credential), credentialPlace(owner)),
      credentialKind: credential.type,
      credentialHint: hintOf(secretOf(credential)),
    };
  }

  openCredential(agent: Owner & Pick<AgentEntity, 'credential'>): Credential | undefined {
    return agent.credential === null
      ? undefined
      : (JSON.parse(this.vault.open(agent.credential, credentialPlace(agent)).reveal()) as Credential);
  }

  /**
   * Splits the address of a card into the URL without its query and the sealed query, because a query may hold a
   * credential.
   */
  sealAddress(owner: Owner, address: string): Address {
    const { url, query } = this.queries.hide(address);
    return { cardUrl: url, cardQuery: query === undefined ? null : this.vault.seal(query, placeOfQuery(owner)) };
  }

  /** Returns the whole address of the card, with its query. */
  openAddress(agent: Owner & Address): string {
    const { cardUrl: url, cardQuery } = agent;
    if (cardQuery === null) return url;
    return UrlQueries.whole({ url, query: this.vault.open(cardQuery, placeOfQuery(agent)).reveal() });
  }
}

function placeOfQuery(owner: Owner) {
  return { ...credentialPlace(owner), table: 'agent_cards.card_query' };
}

function credentialPlace({ id, orgId }: Owner) {
  return { table: 'agent_cards', row: id, org: orgId };
}

function secretOf(credential: Credential): string {
  switch (credential.type) {
    case 'bearer':
      return credential.token;
    case 'apiKey':
      return credential.value;
    case 'oauth2':
      return credential.clientSecret;
    default:
      return assertNever(credential);
  }
}

/** Returns the last four characters of a secret of at least 16 characters; otherwise only an ellipsis. */
function hintOf(secret: string): string {
  return secret.length >= 16 ? `…${secret.slice(-4)}` : '…';
}
