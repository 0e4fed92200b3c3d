import { createHash } from 'node:crypto';
import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import type { Notice } from '../../kernel/notices.js';
import { Notices } from '../../platform/bus/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { SnapshotCache } from '../../platform/database/snapshot-cache.js';
import type { Tx } from '../../platform/database/tx.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import type { McpServerEntity } from '../storage/mcp-server.entity.js';
import { serverOf } from '../storage/registered-server.js';
import type { RegisteredServer } from '../registered-server.types.js';
import { ServerOffers } from '../catalog/server-offers.js';
import { UpstreamPool } from '../connections/upstream-pool.js';
import { SealedEndpoints, type UserCredential } from '../storage/sealed-endpoints.js';
import type { ApproveTools, Offer, QuarantinedTool } from '../upstream.types.js';
import { UserCredentialStore, type KeptCredential } from '../storage/user-credential.store.js';

/** Notices may be lost. */
const lookMs = 30_000;

interface Own extends UserCredential {
  readonly headers: readonly string[];
  readonly offer: Offer;
  readonly quarantinedTools: QuarantinedTool[];
}

interface Given {
  readonly caller: string;
  /** By the names as the server has them. */
  readonly headers: Readonly<Record<string, string>>;
  /** What the server has for who sends them. */
  readonly offer: Offer;
}

/** The credentials of one caller, by the rows of their servers. */
export type OwnCredentials = ReadonlyMap<string, Own>;

/** A server, as far as it tells whose credentials it takes. */
type Asking = Pick<McpServerEntity, 'id' | 'orgId' | 'serverId' | 'url' | 'userCredentials' | 'userHeaders'>;

/** By what callers are known to MCP servers, and what these have for each of them. */
@Injectable()
export class UserCredentials implements OnModuleInit, OnApplicationShutdown {
  private readonly own = new SnapshotCache<OwnCredentials>({
    probe: (key) => this.store.version(...ownerIn(key)),
    load: async (key) => {
      const [org, caller] = ownerIn(key);
      return new Map((await this.store.of(org, caller)).map((row) => [row.server, this.ownOf(row, caller)]));
    },
  });
  /** Most users of a server are offered the same: that is in memory once, by its hash. */
  private readonly texts = new Map<string, WeakRef<Offer>>();
  private readonly servers = new WeakMap<RegisteredServer, WeakMap<object, RegisteredServer>>();
  private readonly looking = setInterval(() => void this.look(), lookMs).unref();

  constructor(
    private readonly store: UserCredentialStore,
    private readonly places: SealedEndpoints,
    private readonly pool: UpstreamPool,
    private readonly notices: Notices,
    private readonly offers: ServerOffers,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  onModuleInit(): void {
    this.notices.onMissed(() => void this.look());
  }

  onApplicationShutdown(): void {
    clearInterval(this.looking);
  }

  /** The caller's own, given for this server as it is now; undefined when there is none. */
  async of(ctx: CallContext, server: Asking): Promise<UserCredential | undefined> {
    if (server.userCredentials === 'none' || server.orgId !== ctx.org.id) return undefined;
    return fitting(await this.given(ctx), server);
  }

  /** By what a call of the caller goes: absent, by what all share. Throws `credential_required`. */
  async needed(ctx: CallContext, server: Asking): Promise<UserCredential | undefined> {
    const own = await this.of(ctx, server);
    if (!own && server.userCredentials === 'required') throw credentialRequired(server);
    return own;
  }

  /** All of the caller's: another object whenever they are others. */
  given(ctx: CallContext): Promise<OwnCredentials> {
    return this.own.get(keyOf(ctx));
  }

  /** The same when they are fresh, without a promise. */
  peekGiven(ctx: CallContext): OwnCredentials | undefined {
    return this.own.peek(keyOf(ctx));
  }

  /** A server with what it has for the caller whose credentials are given. */
  seenWith(given: OwnCredentials, server: RegisteredServer): RegisteredServer {
    const own = fitting(given, server.row);
    if (!own) return server;
    const { offer } = own;
    const ownHeld = server.row.toolChanges === 'accept' ? [] : own.quarantinedTools;
    const known = this.servers.get(server) ?? new WeakMap<object, RegisteredServer>();
    this.servers.set(server, known);
    const key = ownHeld.length === 0 ? offer : own;
    // What waits for an admin waits for all, whatever it is for one.
    const quarantinedTools = [...server.row.quarantinedTools, ...ownHeld];
    const seen = known.get(key) ?? serverOf({ ...server.row, offer, quarantinedTools }, offer);
    known.set(key, seen);
    return seen;
  }

  /** A server has something else for a user now. */
  tellOffer({ orgId, id }: Pick<Asking, 'orgId' | 'id'>, { caller }: Pick<UserCredential, 'caller'>, tx?: Tx): void {
    this.notices.tell(tx, 'upstream.offer-changed', { orgId, serverId: id, caller });
  }

  /** Ends the quarantine of tools for the user whose credential it is. Throws as ServerOffers.approveFor does. */
  async approve(tx: Tx, server: Asking, id: string, wanted: ApproveTools['tools']): Promise<void> {
    const caller = await this.offers.approveFor(tx, server, id, wanted);
    this.tellOffer(server, { caller }, tx);
  }

  /** In place of the caller's former one, which approves nothing that waits: since when. Throws `not_found` when the server is gone. */
  async put(tx: Tx, server: Asking, { caller, headers, offer }: Given): Promise<Date> {
    const user = { caller, origin: originOf(server) };
    const sealed = this.places.sealUser(server, user, headers);
    const { id, orgId } = server;
    const pins = await this.offers.pinsFor(tx, { server: id, caller }, offer);
    const kept = { ...user, id: newId(), orgId, server: id, headers: Object.keys(headers), sealed, offer, ...pins };
    const since = await this.store.put(tx, kept);
    if (!since) throw new RialtoError('not_found', { message: 'no such MCP server' });
    this.tellChanged(tx, server, caller);
    return since;
  }

  /** After the commit no line goes on with the former credential, in whichever process. */
  tellChanged(tx: Tx, { orgId, id }: Pick<Asking, 'orgId' | 'id'>, caller: string): void {
    this.notices.tell(tx, 'upstream.credential-changed', { orgId, serverId: id, caller });
  }

  @OnNotice('upstream.credential-changed')
  credentialChanged({ orgId, serverId, caller }: Notice<'upstream.credential-changed'>): void {
    this.own.expire(keyIn(orgId, caller));
    this.pool.dropUser(serverId, caller);
  }

  @OnNotice('upstream.offer-changed')
  offerChanged({ orgId, caller }: Notice<'upstream.offer-changed'>): void {
    this.own.expire(keyIn(orgId, caller));
  }

  /** Ends lines whose credential is gone, where no notice said so. */
  private async look(): Promise<void> {
    const lines = this.pool.users();
    if (lines.length === 0) return;
    try {
      const left = await this.store.left(lines.map(({ user }) => user.id));
      for (const { server, user } of lines) if (!left.has(user.id)) this.pool.dropUser(server.id, user.caller);
    } catch (err) {
      this.log.warn({ err }, 'credentials of users are looked over later');
    }
  }

  private ownOf({ offer, ...kept }: KeptCredential, caller: string): Own {
    return { ...kept, caller, offer: this.inMemoryOnce(offer) };
  }

  private inMemoryOnce(text: string): Offer {
    const hash = createHash('sha256').update(text).digest('base64');
    const known = this.texts.get(hash)?.deref();
    if (known) return known;
    for (const [key, offer] of this.texts) if (!offer.deref()) this.texts.delete(key);
    const offer = JSON.parse(text) as Offer;
    this.texts.set(hash, new WeakRef(offer));
    return offer;
  }
}

/** Where credentials for a server are sent, and nowhere else. */
function originOf({ url }: Pick<Asking, 'url'>): string {
  return url === null ? '' : new URL(url).origin;
}

/** What tells callers how to give a server the credential that it wants of them. */
function credentialRequired({ serverId, userHeaders }: Asking): RialtoError {
  const at = placeFor(serverId);
  return new RialtoError('credential_required', {
    message: `the MCP server "${serverId}" needs a credential of yours: PUT ${at}`,
    hint: `PUT ${at} with {"headers": {${userHeaders.map((name) => `"${name}": "…"`).join(', ')}}}`,
    data: { server: serverId, credential: at, headers: userHeaders },
  });
}

/** Of a call that went by the caller's own credential: the server did not take it. Anything else is as it was thrown. */
export function refusalOf(thrown: unknown, { serverId }: Pick<Asking, 'serverId'>): unknown {
  const error = RialtoError.from(thrown);
  const statuses = [error, error.cause].map((each) => each instanceof RialtoError && each.data?.upstreamStatus);
  if (!statuses.includes(401)) return thrown;
  const at = placeFor(serverId);
  return new RialtoError('credential_refused', {
    message: `the MCP server "${serverId}" refused the credential that you gave for it`,
    hint: `PUT ${at} with one that it takes, or DELETE ${at}`,
    data: { server: serverId, credential: at },
    cause: thrown,
  });
}

/** The path at which callers keep their own. */
function placeFor(serverId: string): string {
  return `/api/mcp/servers/${serverId}/credential`;
}

/** One that was given for the same place and for all headers that the server wants now. */
function fitting(own: OwnCredentials, server: Asking): Own | undefined {
  const given = server.userCredentials === 'none' ? undefined : own.get(server.id);
  const names = given?.headers.map((name) => name.toLowerCase());
  const isFit = server.userHeaders.every((name) => names?.includes(name.toLowerCase()));
  return given?.origin === originOf(server) && isFit ? given : undefined;
}

function keyOf({ org, principal }: CallContext): string {
  return keyIn(org.id, callerOf(principal));
}

function keyIn(org: string, caller: string): string {
  return `${org} ${caller}`;
}

/** An id of an org has no space. */
function ownerIn(key: string): [org: string, caller: string] {
  const at = key.indexOf(' ');
  return [key.slice(0, at), key.slice(at + 1)];
}
