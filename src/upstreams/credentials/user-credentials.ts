import { createHash } from 'node:crypto';
import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { Notice } from '../../kernel/notices.js';
import { Notices } from '../../platform/bus/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { SnapshotCache } from '../../platform/database/snapshot-cache.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import type { McpServerEntity } from '../storage/mcp-server.entity.js';
import { serverOf } from '../storage/registered-server.js';
import type { RegisteredServer } from '../registered-server.types.js';
import { UpstreamPool } from '../connections/upstream-pool.js';
import type { UserCredential } from '../storage/sealed-endpoints.js';
import type { Offer, QuarantinedTool } from '../upstream.types.js';
import { UserCredentialStore, type KeptCredential } from '../storage/user-credential.store.js';

/** Interval of the check for withdrawn credentials; notices may be lost. */
const checkMs = 30_000;

interface HeldCredential extends UserCredential {
  readonly headers: readonly string[];
  readonly offer: Offer;
  readonly quarantinedTools: QuarantinedTool[];
}

/** Credentials of one caller, by the row ids of their servers. */
export type OwnCredentials = ReadonlyMap<string, HeldCredential>;

/** Members of a server that decide which credentials it takes. */
export type CredentialServer = Pick<
  McpServerEntity,
  'id' | 'orgId' | 'serverId' | 'url' | 'userCredentials' | 'userHeaders'
>;

/** Holds the credentials of callers for MCP servers, and what the servers offer to each caller. */
@Injectable()
export class UserCredentials implements OnModuleInit, OnApplicationShutdown {
  private readonly cache = new SnapshotCache<OwnCredentials>({
    probe: (key) => this.store.version(...ownerIn(key)),
    load: async (key) => {
      const [org, caller] = ownerIn(key);
      return new Map(
        (await this.store.credentialsOf(org, caller)).map((row) => [row.server, this.credentialOf(row, caller)]),
      );
    },
  });
  /** Offers in memory, by hash. Most users of a server are offered the same, which is then stored once. */
  private readonly texts = new Map<string, WeakRef<Offer>>();
  private readonly servers = new WeakMap<RegisteredServer, WeakMap<object, RegisteredServer>>();
  private readonly checkTimer = setInterval(() => void this.closeWithdrawn(), checkMs).unref();

  constructor(
    private readonly store: UserCredentialStore,
    private readonly pool: UpstreamPool,
    private readonly notices: Notices,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  onModuleInit(): void {
    this.notices.onMissed(() => void this.closeWithdrawn());
  }

  onApplicationShutdown(): void {
    clearInterval(this.checkTimer);
  }

  /** Returns the caller's credential for this server as it is now; undefined when there is none. */
  async credentialFor(ctx: CallContext, server: CredentialServer): Promise<UserCredential | undefined> {
    if (server.userCredentials === 'none' || server.orgId !== ctx.org.id) return undefined;
    return usableCredential(await this.given(ctx), server);
  }

  /**
   * Returns the credential that a call of the caller uses; undefined for the shared connection. Throws
   * `credential_required`.
   */
  async requireCredential(ctx: CallContext, server: CredentialServer): Promise<UserCredential | undefined> {
    const credential = await this.credentialFor(ctx, server);
    if (!credential && server.userCredentials === 'required') throw credentialRequired(server);
    return credential;
  }

  /** Returns when the caller set its credential for this server; undefined when there is none. */
  async givenAt(ctx: CallContext, server: CredentialServer): Promise<Date | undefined> {
    const credential = await this.credentialFor(ctx, server);
    return credential && (await this.store.find(server.id, credential.caller))?.createdAt;
  }

  /** Returns all credentials of the caller. The object changes whenever a credential changes. */
  given(ctx: CallContext): Promise<OwnCredentials> {
    return this.cache.get(credentialKey(ctx));
  }

  /** Returns the same without a promise, when the cache is fresh. */
  peekGiven(ctx: CallContext): OwnCredentials | undefined {
    return this.cache.peek(credentialKey(ctx));
  }

  /** Returns a server with what it offers to the owner of the credentials. */
  seenWith(given: OwnCredentials, server: RegisteredServer): RegisteredServer {
    const credential = usableCredential(given, server.row);
    if (!credential) return server;
    const { offer } = credential;
    const ownQuarantine = server.row.toolChanges === 'accept' ? [] : credential.quarantinedTools;
    const known = this.servers.get(server) ?? new WeakMap<object, RegisteredServer>();
    this.servers.set(server, known);
    const key = ownQuarantine.length === 0 ? offer : credential;
    // A tool that waits for approval on the server waits for every user, even when it is approved for one user.
    const quarantinedTools = [...server.row.quarantinedTools, ...ownQuarantine];
    const seen = known.get(key) ?? serverOf({ ...server.row, offer, quarantinedTools }, offer);
    known.set(key, seen);
    return seen;
  }

  @OnNotice('upstream.credential-changed')
  credentialChanged({ orgId, serverId, caller }: Notice<'upstream.credential-changed'>): void {
    this.cache.expire(keyIn(orgId, caller));
    this.pool.dropUser(serverId, caller);
  }

  @OnNotice('upstream.offer-changed')
  offerChanged({ orgId, caller }: Notice<'upstream.offer-changed'>): void {
    this.cache.expire(keyIn(orgId, caller));
  }

  /** Closes connections of withdrawn credentials, for the case that a notice was lost. */
  private async closeWithdrawn(): Promise<void> {
    const connections = this.pool.users();
    if (connections.length === 0) return;
    try {
      const left = await this.store.findExisting(connections.map(({ user }) => user.id));
      for (const { server, user } of connections) if (!left.has(user.id)) this.pool.dropUser(server.id, user.caller);
    } catch (err) {
      this.log.warn({ err }, 'could not check for withdrawn credentials; tries again later');
    }
  }

  private credentialOf({ offer, ...stored }: KeptCredential, caller: string): HeldCredential {
    return { ...stored, caller, offer: this.sharedOffer(offer) };
  }

  private sharedOffer(text: string): Offer {
    const hash = createHash('sha256').update(text).digest('base64');
    const known = this.texts.get(hash)?.deref();
    if (known) return known;
    for (const [key, offer] of this.texts) if (!offer.deref()) this.texts.delete(key);
    const offer = JSON.parse(text) as Offer;
    this.texts.set(hash, new WeakRef(offer));
    return offer;
  }
}

/** Returns the only origin to which credentials for a server are sent. */
export function originOf({ url }: Pick<CredentialServer, 'url'>): string {
  return url === null ? '' : new URL(url).origin;
}

/** Error that explains how to set the credential that a server requires. */
function credentialRequired({ serverId, userHeaders }: CredentialServer): RialtoError {
  const at = pathFor(serverId);
  return new RialtoError('credential_required', {
    message: `the MCP server "${serverId}" needs your own credential: PUT ${at}`,
    hint: `PUT ${at} with {"headers": {${userHeaders.map((name) => `"${name}": "…"`).join(', ')}}}`,
    data: { server: serverId, credential: at, headers: userHeaders },
  });
}

/**
 * Converts a 401 answer to a call with the caller's credential into `credential_refused`. Returns any other error
 * unchanged.
 */
export function asCredentialRefusal(thrown: unknown, { serverId }: Pick<CredentialServer, 'serverId'>): unknown {
  const error = RialtoError.from(thrown);
  const statuses = [error, error.cause].map((each) => each instanceof RialtoError && each.data?.upstreamStatus);
  if (!statuses.includes(401)) return thrown;
  const at = pathFor(serverId);
  return new RialtoError('credential_refused', {
    message: `the MCP server "${serverId}" refused your credential`,
    hint: `PUT ${at} with a valid credential, or DELETE ${at}`,
    data: { server: serverId, credential: at },
    cause: thrown,
  });
}

/** Path at which callers manage their own credential. */
function pathFor(serverId: string): string {
  return `/api/mcp/servers/${serverId}/credential`;
}

/**
 * Returns the credential when it was set for the current origin and covers all headers that the server requires now.
 */
function usableCredential(all: OwnCredentials, server: CredentialServer): HeldCredential | undefined {
  const given = server.userCredentials === 'none' ? undefined : all.get(server.id);
  const names = given?.headers.map((name) => name.toLowerCase());
  const hasAllHeaders = server.userHeaders.every((name) => names?.includes(name.toLowerCase()));
  return given?.origin === originOf(server) && hasAllHeaders ? given : undefined;
}

function credentialKey({ org, principal }: CallContext): string {
  return keyIn(org.id, callerOf(principal));
}

function keyIn(org: string, caller: string): string {
  return `${org} ${caller}`;
}

/** Splits at the first space, because the id of an org has no space. */
function ownerIn(key: string): [org: string, caller: string] {
  const at = key.indexOf(' ');
  return [key.slice(0, at), key.slice(at + 1)];
}
