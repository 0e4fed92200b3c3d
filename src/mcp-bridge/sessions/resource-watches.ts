import { Inject, Injectable } from '@nestjs/common';
import { isOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { Notice } from '../../kernel/notices.js';
import { Notices } from '../../platform/bus/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { UpstreamCalls } from '../../upstreams/upstream-calls.js';
import { McpSubscriptionStore, type Watched } from './mcp-subscription.store.js';
import { requireUri, ServerFeatures } from '../features/server-features.js';
import type { ListOptions } from '../tools/tool-call.types.js';

const mostAtOnce = 100;

interface Attended {
  readonly ctx: CallContext;
  streams: number;
  turn: Promise<void>;
  /** What is watched for it, by `<server> <uri>`, and how to end that. */
  readonly watches: Map<string, () => void>;
}

/** A stream of the 2026-07-28 revision, and what it named. */
interface Listener {
  readonly ctx: CallContext;
  /** The one server of its door. */
  readonly only?: string;
  /** By the row of the server, and by what that is called. */
  readonly named: readonly (Watched & { readonly serverId: string })[];
  readonly end: () => void;
}

/**
 * Resources whose changes clients want to hear of. A session of the 2025 era has them as rows; whichever process holds a stream of it
 * watches for it. The 2026-07-28 revision names them when it opens a stream.
 */
@Injectable()
export class ResourceWatches {
  private readonly attended = new Map<string, Attended>();
  private readonly listeners = new Set<Listener>();

  constructor(
    private readonly features: ServerFeatures,
    private readonly calls: UpstreamCalls,
    private readonly store: McpSubscriptionStore,
    private readonly notices: Notices,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** `resources/subscribe` of a session. Throws as UpstreamCalls.watched does, and `invalid_params`. */
  async subscribe(ctx: CallContext, options: ListOptions, session: string, params: unknown): Promise<void> {
    const { uri, servers } = await this.features.asked(ctx, options, params);
    const { row } = await this.calls.watched(ctx, servers, uri);
    await this.store.add(session, { server: row.id, uri });
    this.notices.tell(undefined, 'mcp.subscribed', { orgId: ctx.org.id, sessionId: session });
  }

  /** `resources/unsubscribe`: ending what there is none of is no error. Throws `invalid_params`. */
  async unsubscribe(ctx: CallContext, session: string, params: unknown): Promise<void> {
    await this.store.remove(session, requireUri((params as { uri?: unknown } | undefined)?.uri));
    this.notices.tell(undefined, 'mcp.subscribed', { orgId: ctx.org.id, sessionId: session });
  }

  /** A stream of a session is open here until what it returns is called. */
  attend(ctx: CallContext, session: string): () => void {
    const known = this.attended.get(session) ?? {
      ctx,
      streams: 0,
      turn: Promise.resolve(),
      watches: new Map<string, () => void>(),
    };
    this.attended.set(session, known);
    known.streams++;
    void this.look(session);
    return () => {
      if (--known.streams > 0) return;
      this.attended.delete(session);
      for (const release of known.watches.values()) release();
      known.watches.clear();
    };
  }

  /**
   * The resources that a stream of the 2026-07-28 revision names, until what it returns is called. Throws as `subscribe` does.
   * @param end ends the stream, when its caller may not hear of one of them any more.
   */
  async listen(ctx: CallContext, options: ListOptions, uris: readonly unknown[], end: () => void): Promise<() => void> {
    if (uris.length > mostAtOnce)
      throw new RialtoError('invalid_params', { message: `a stream may watch ${mostAtOnce} resources` });
    const watches: [RegisteredServer, string][] = [];
    for (const given of uris) {
      const { uri, servers } = await this.features.asked(ctx, options, { uri: given as string });
      watches.push([await this.calls.watched(ctx, servers, uri), uri]);
    }
    const named = watches.map(([{ row }, uri]) => ({ server: row.id, serverId: row.serverId, uri }));
    const listener = { ctx, only: options.only, named, end };
    const releases: (() => void)[] = [];
    const release = (): void => {
      this.listeners.delete(listener);
      for (const over of releases.splice(0)) over();
    };
    try {
      for (const [server, uri] of watches) releases.push(await this.calls.watch(ctx, server, uri));
    } catch (error) {
      release();
      throw error;
    }
    if (listener.named.length > 0) this.listeners.add(listener);
    return release;
  }

  /** Sessions with a stream here that watch a resource of a server of their org; of one caller alone where that is given. */
  sessionsWatching(org: string, server: string, uri: string, caller?: string): string[] {
    const key = `${server} ${uri}`;
    return [...this.attended]
      .filter(([, { ctx, watches }]) => ctx.org.id === org && isOf(ctx, caller) && watches.has(key))
      .map(([id]) => id);
  }

  /** Whether a stream of the 2026-07-28 revision of this caller, at this door, named a resource of a server. */
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
    void this.look(sessionId);
  }

  /** Who may read what may be another. */
  @OnNotice('policy.changed')
  policyChanged({ orgId }: Notice<'policy.changed'>): void {
    void this.recheck(orgId);
  }

  /** Its allow list may be another, or it is gone. */
  @OnNotice('upstream.changed')
  serverChanged({ orgId }: Notice<'upstream.changed'>): void {
    void this.recheck(orgId);
  }

  /** What a caller watches goes by another line now, or by none. */
  @OnNotice('upstream.credential-changed')
  credentialChanged({ orgId, serverId, caller }: Notice<'upstream.credential-changed'>): void {
    for (const [session, { ctx, watches }] of this.attended) {
      if (ctx.org.id !== orgId || !isOf(ctx, caller)) continue;
      for (const release of watches.values()) release();
      watches.clear();
      void this.look(session);
    }
    for (const { ctx, named, end } of this.listeners)
      if (ctx.org.id === orgId && isOf(ctx, caller) && named.some(({ server }) => server === serverId)) end();
  }

  private async recheck(org: string): Promise<void> {
    // Others who are told of the change forget what they knew before.
    await new Promise(setImmediate);
    for (const [session, { ctx }] of this.attended) if (ctx.org.id === org) void this.look(session);
    for (const listener of this.listeners)
      if (listener.ctx.org.id === org && !(await this.mayHear(listener))) listener.end();
  }

  /** A check that fails ends no stream: the next one does. */
  private async mayHear({ ctx, named }: Listener): Promise<boolean> {
    try {
      const servers = new Map((await this.features.servers(ctx)).map((server) => [server.row.id, server]));
      const answers = named.map(async ({ server: id, uri }) => {
        const server = servers.get(id);
        return server !== undefined && (await this.calls.mayWatch(ctx, server, uri));
      });
      return (await Promise.all(answers)).every(Boolean);
    } catch (err) {
      this.log.warn({ err }, 'what a stream may hear of could not be decided');
      return true;
    }
  }

  /** Watches what the session's rows say, and nothing else: one look after the other, so that the last one counts. */
  private look(session: string): Promise<void> {
    const known = this.attended.get(session);
    if (!known) return Promise.resolve();
    return (known.turn = known.turn.then(() => this.align(session, known)));
  }

  private async align(session: string, known: Attended): Promise<void> {
    try {
      const rows = await this.store.of(session);
      const servers = new Map((await this.features.servers(known.ctx)).map((server) => [server.row.id, server]));
      const wanted = new Map<string, { server: RegisteredServer; uri: string }>();
      for (const { server: id, uri } of rows) {
        const server = servers.get(id);
        if (server && (await this.calls.mayWatch(known.ctx, server, uri)))
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
          const release = await this.calls.watch(known.ctx, server, uri);
          if (this.attended.get(session) !== known) return release();
          known.watches.set(key, release);
        }
    } catch (err) {
      this.log.warn({ err }, 'what a session watches could not be read');
    }
  }
}
