import { Inject, Injectable } from '@nestjs/common';
import { isOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { Notice } from '../../kernel/notices.js';
import { Notices } from '../../platform/bus/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { UpstreamSubscriptions } from '../../upstreams/upstream-subscriptions.js';
import { McpSubscriptionStore, type Watched } from './mcp-subscription.store.js';
import { requireUri, ServerFeatures } from '../features/server-features.js';
import type { ListOptions } from '../tools/tool-call.types.js';

const maxAtOnce = 100;

interface Attended {
  readonly ctx: CallContext;
  streams: number;
  turn: Promise<void>;
  /** The active watches of the session, by `<server> <uri>`, each with the function that ends it. */
  readonly watches: Map<string, () => void>;
}

/** A stream of the 2026-07-28 revision, and the resources that it named. */
interface Listener {
  readonly ctx: CallContext;
  /** Id of the only server of its door. */
  readonly only?: string;
  /** The named resources, each with the row id and the server id of its server. */
  readonly named: readonly (Watched & { readonly serverId: string })[];
  readonly end: () => void;
}

/**
 * Resource subscriptions of clients. A session of the 2025 era has them as rows, and the process that holds one of its
 * streams watches the resources. A client of the 2026-07-28 revision names the resources when it opens a stream.
 */
@Injectable()
export class ResourceWatches {
  private readonly attended = new Map<string, Attended>();
  private readonly listeners = new Set<Listener>();

  constructor(
    private readonly features: ServerFeatures,
    private readonly subscriptions: UpstreamSubscriptions,
    private readonly store: McpSubscriptionStore,
    private readonly notices: Notices,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Handles `resources/subscribe` of a session. Throws the errors of `findWatchable`, and
   * `invalid_params`. */
  async subscribe(ctx: CallContext, options: ListOptions, session: string, params: unknown): Promise<void> {
    const { uri, servers } = await this.features.asked(ctx, options, params);
    const { row } = await this.subscriptions.findWatchable(ctx, servers, uri);
    await this.store.add(session, { server: row.id, uri });
    this.notices.tell(undefined, 'mcp.subscribed', { orgId: ctx.org.id, sessionId: session });
  }

  /** Handles `resources/unsubscribe`; ending a missing subscription is not an error. Throws `invalid_params`. */
  async unsubscribe(ctx: CallContext, session: string, params: unknown): Promise<void> {
    await this.store.remove(session, requireUri((params as { uri?: unknown } | undefined)?.uri));
    this.notices.tell(undefined, 'mcp.subscribed', { orgId: ctx.org.id, sessionId: session });
  }

  /** Registers an open stream of a session in this process; the returned function removes it. */
  attendSession(ctx: CallContext, session: string): () => void {
    const known = this.attended.get(session) ?? {
      ctx,
      streams: 0,
      turn: Promise.resolve(),
      watches: new Map<string, () => void>(),
    };
    this.attended.set(session, known);
    known.streams++;
    void this.enqueueAlign(session);
    return () => {
      if (--known.streams > 0) return;
      this.attended.delete(session);
      for (const release of known.watches.values()) release();
      known.watches.clear();
    };
  }

  /**
   * Watches the resources that a stream of the 2026-07-28 revision names; the returned function ends the watches.
   * Throws as `subscribe` does.
   * @param end ends the stream when its caller may no longer read one of the resources.
   */
  async watchForStream(
    ctx: CallContext,
    options: ListOptions,
    uris: readonly unknown[],
    end: () => void,
  ): Promise<() => void> {
    if (uris.length > maxAtOnce)
      throw new RialtoError('invalid_params', { message: `a stream may subscribe to at most ${maxAtOnce} resources` });
    const watches: [RegisteredServer, string][] = [];
    for (const given of uris) {
      const { uri, servers } = await this.features.asked(ctx, options, { uri: given as string });
      watches.push([await this.subscriptions.findWatchable(ctx, servers, uri), uri]);
    }
    const named = watches.map(([{ row }, uri]) => ({ server: row.id, serverId: row.serverId, uri }));
    const listener = { ctx, only: options.only, named, end };
    const releases: (() => void)[] = [];
    const release = (): void => {
      this.listeners.delete(listener);
      for (const over of releases.splice(0)) over();
    };
    try {
      for (const [server, uri] of watches) releases.push(await this.subscriptions.watchResource(ctx, server, uri));
    } catch (error) {
      release();
      throw error;
    }
    if (listener.named.length > 0) this.listeners.add(listener);
    return release;
  }

  /**
   * Returns the sessions with a stream in this process that watch a resource of a server of their org; only those of
   * one caller when `caller` is given.
   */
  sessionsWatching(org: string, server: string, uri: string, caller?: string): string[] {
    const key = `${server} ${uri}`;
    return [...this.attended]
      .filter(([, { ctx, watches }]) => ctx.org.id === org && isOf(ctx, caller) && watches.has(key))
      .map(([id]) => id);
  }

  /** True when a stream of the 2026-07-28 revision of this caller, at this door, named a resource of a server. */
  isNamed(of: { org: string; caller: string; only?: string }, server: string, uri: string): boolean {
    return [...this.listeners].some(
      ({ ctx, only, named }) =>
        ctx.org.id === of.org &&
        isOf(ctx, of.caller) &&
        only === of.only &&
        named.some((one) => one.serverId === server && one.uri === uri),
    );
  }

  @OnNotice('mcp.subscribed')
  changed({ sessionId }: Notice<'mcp.subscribed'>): void {
    void this.enqueueAlign(sessionId);
  }

  /** The policies that decide who may read a resource may have changed. */
  @OnNotice('policy.changed')
  policyChanged({ orgId }: Notice<'policy.changed'>): void {
    void this.recheck(orgId);
  }

  /** The allow list of the server may have changed, or the server was removed. */
  @OnNotice('upstream.changed')
  serverChanged({ orgId }: Notice<'upstream.changed'>): void {
    void this.recheck(orgId);
  }

  /** The caller's resources now use another connection, or none. */
  @OnNotice('upstream.credential-changed')
  credentialChanged({ orgId, serverId, caller }: Notice<'upstream.credential-changed'>): void {
    for (const [session, { ctx, watches }] of this.attended) {
      if (ctx.org.id !== orgId || !isOf(ctx, caller)) continue;
      for (const release of watches.values()) release();
      watches.clear();
      void this.enqueueAlign(session);
    }
    for (const { ctx, named, end } of this.listeners)
      if (ctx.org.id === orgId && isOf(ctx, caller) && named.some(({ server }) => server === serverId)) end();
  }

  private async recheck(org: string): Promise<void> {
    // Other listeners of the same notice clear their caches first.
    await new Promise(setImmediate);
    for (const [session, { ctx }] of this.attended) if (ctx.org.id === org) void this.enqueueAlign(session);
    for (const listener of this.listeners)
      if (listener.ctx.org.id === org && !(await this.mayReadAll(listener))) listener.end();
  }

  /**
   * True when the caller may still read the resources of the stream. A failed check does not end the stream; the next
   * check decides.
   */
  private async mayReadAll({ ctx, named }: Listener): Promise<boolean> {
    try {
      const servers = new Map((await this.features.servers(ctx)).map((server) => [server.row.id, server]));
      const answers = named.map(async ({ server: id, uri }) => {
        const server = servers.get(id);
        return server !== undefined && (await this.subscriptions.mayWatch(ctx, server, uri));
      });
      return (await Promise.all(answers)).every(Boolean);
    } catch (err) {
      this.log.warn({ err }, 'the resources of a stream could not be checked');
      return true;
    }
  }

  /** Aligns the watches of a session with its rows; runs are queued, so that the last one decides. */
  private enqueueAlign(session: string): Promise<void> {
    const known = this.attended.get(session);
    if (!known) return Promise.resolve();
    return (known.turn = known.turn.then(() => this.alignSession(session, known)));
  }

  private async alignSession(session: string, known: Attended): Promise<void> {
    try {
      const rows = await this.store.subscriptionsOf(session);
      const servers = new Map((await this.features.servers(known.ctx)).map((server) => [server.row.id, server]));
      const wanted = new Map<string, { server: RegisteredServer; uri: string }>();
      for (const { server: id, uri } of rows) {
        const server = servers.get(id);
        if (server && (await this.subscriptions.mayWatch(known.ctx, server, uri)))
          wanted.set(`${server.row.serverId} ${uri}`, { server, uri });
      }
      if (this.attended.get(session) !== known) return;
      for (const [key, release] of known.watches)
        if (!wanted.has(key)) {
          release();
          known.watches.delete(key);
        }
      for (const [key, { server, uri }] of wanted)
        if (!known.watches.has(key)) {
          const release = await this.subscriptions.watchResource(known.ctx, server, uri);
          if (this.attended.get(session) !== known) return release();
          known.watches.set(key, release);
        }
    } catch (err) {
      this.log.warn({ err }, 'the subscriptions of a session could not be read');
    }
  }
}
