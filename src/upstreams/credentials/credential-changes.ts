import { Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { isUuid, newId } from '../../kernel/ids.js';
import { Notices } from '../../platform/bus/notices.js';
import type { Tx } from '../../platform/database/tx.js';
import { ServerOffers } from '../catalog/server-offers.js';
import { SealedEndpoints } from '../storage/sealed-endpoints.js';
import { UserCredentialStore } from '../storage/user-credential.store.js';
import type { ApproveTools, Offer } from '../upstream.types.js';
import { originOf, type CredentialServer } from './user-credentials.js';

interface Given {
  readonly caller: string;
  /** Headers with the spelling of the server. */
  readonly headers: Readonly<Record<string, string>>;
  /** Offer of the server to a caller that sends these headers. */
  readonly offer: Offer;
}

/** Changes the credentials of callers, and notifies all processes after the commit. */
@Injectable()
export class CredentialChanges {
  constructor(
    private readonly store: UserCredentialStore,
    private readonly endpoints: SealedEndpoints,
    private readonly offers: ServerOffers,
    private readonly notices: Notices,
  ) {}

  /**
   * Replaces the caller's credential and returns its creation time. Tools in quarantine stay there. Throws `not_found`
   * when the server was deleted.
   */
  async put(tx: Tx, server: CredentialServer, { caller, headers, offer }: Given): Promise<Date> {
    const user = { caller, origin: originOf(server) };
    const sealed = this.endpoints.sealUser(server, user, headers);
    const { id, orgId } = server;
    const pins = await this.offers.pinsFor(tx, { server: id, caller }, offer);
    const stored = { ...user, id: newId(), orgId, server: id, headers: Object.keys(headers), sealed, offer, ...pins };
    const since = await this.store.put(tx, stored);
    if (!since) throw new RialtoError('not_found', { message: 'no such MCP server' });
    this.notifyCredential(tx, server, caller);
    return since;
  }

  /** Withdraws a credential; its running calls end as `unavailable`. Throws `not_found`. */
  async withdraw(tx: Tx, server: CredentialServer, by: { caller: string } | { id: string }): Promise<void> {
    if ('id' in by) requireCredentialId(by.id);
    const withdrawn = await this.store.withdraw(tx, server.id, by);
    if (!withdrawn) throw noSuchCredential();
    this.notifyCredential(tx, server, withdrawn.caller);
  }

  /** Ends the quarantine of tools for the owner of the credential. Throws as ServerOffers.approveFor does. */
  async approve(tx: Tx, server: CredentialServer, id: string, wanted: ApproveTools['tools']): Promise<void> {
    const caller = await this.offers.approveFor(tx, server, requireCredentialId(id), wanted);
    this.notices.tell(tx, 'upstream.offer-changed', { orgId: server.orgId, serverId: server.id, caller });
  }

  /** Notifies all processes: no connection continues to use the former credential. */
  private notifyCredential(tx: Tx, { orgId, id }: CredentialServer, caller: string): void {
    this.notices.tell(tx, 'upstream.credential-changed', { orgId, serverId: id, caller });
  }
}

/** Throws `not_found` for a text that cannot be the id of a credential. */
export function requireCredentialId(id: string): string {
  if (isUuid(id)) return id;
  throw noSuchCredential();
}

export function noSuchCredential(): RialtoError {
  return new RialtoError('not_found', { message: 'no such credential' });
}
