import type { Client, Notification } from '@modelcontextprotocol/client';
import { systemClock } from '../../kernel/clock.js';
import { raceSignal, timeoutSignal, withTimeout } from '../../kernel/abort.js';
import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { usualTimes } from './backoff.js';
import { InFlightCalls } from '../client-requests/in-flight-calls.js';
import { RefreshDebounce } from './refresh-debounce.js';
import { attemptClient, type ConnectedClient } from './client-attempt.js';
import { ClientCalls, eraOf } from './client-calls.js';
import { openInEra, tooSlow, type Approach, type Attempt } from './era-plan.js';
import { readOffers, requireShort } from '../storage/offer.js';
import { ConnectionSlot } from '../programs/connection-slot.js';
import { capabilitiesOf, offering } from '../client-requests/client-requests.js';
import { Subscriptions } from './subscriptions.js';
import type { CallOptions, ConnectionOptions, ConnectionTimes } from './upstream-connection.types.js';
import { isSessionGone, resting, takenAway, upstreamError } from './upstream-error.js';
import { HealthCheck } from './health-check.js';
import type { FoundOffer, Root, UpstreamStatus } from '../upstream.types.js';

/** Timeout for all pages of all lists together. */
const offerMs = 60_000;
/** How long a server of the 2025 era is not tested again for a later revision. */
const legacyMs = 86_400_000;

/**
 * Connection of one process to one MCP server. It opens when it is needed, and reopens after a failure with a growing
 * delay. A request is never sent twice, except when the server refused it because it forgot the session.
 */
export class UpstreamConnection {
  private client?: Client;
  private opening?: Promise<Client>;
  private failures = 0;
  private failure?: RialtoError;
  private waitUntil = 0;
  private reopening?: NodeJS.Timeout;
  private isClosed = false;
  private readonly callers: InFlightCalls;
  private readonly clients: ClientCalls;
  private readonly refresh: RefreshDebounce;
  private readonly healthCheck: HealthCheck;
  private readonly roots: readonly Root[];
  /** Time until which the server is assumed to speak the 2025 era. */
  private isLegacyUntil = -Infinity;
  /** Whether the server accepts no request before `initialize`, as seen now or on an earlier connection. */
  private wantsInitialize: boolean;
  private readonly subscriptions?: Subscriptions;
  private usedAt = systemClock.elapsed();
  private since?: number;
  private readonly times: Required<ConnectionTimes>;
  private readonly slot: ConnectionSlot;

  constructor(private readonly options: ConnectionOptions) {
    const { server, owner, roots = [], heard, times = usualTimes } = options;
    this.times = { ...usualTimes, ...times };
    this.wantsInitialize = options.wantsInitialize ?? false;
    this.roots = roots;
    this.clients = new ClientCalls(roots);
    this.slot = new ConnectionSlot(options.slots);
    this.refresh = new RefreshDebounce(options.changed);
    this.callers = new InFlightCalls({
      owner,
      roots,
      isModern: () => this.era === 'modern',
      onFlood: () => void this.client?.close().catch(() => undefined),
    });
    this.healthCheck = new HealthCheck({
      server,
      isBusy: () => !this.callers.isIdle,
      onSilence: (client, thrown) => void this.pingFailed(client, thrown),
    });
    const open = (): Promise<unknown> => this.openWithin(offerMs, undefined);
    const updated = (uri: string): void => heard?.('notifications/resources/updated', { uri });
    if (heard) this.subscriptions = new Subscriptions({ open, updated });
  }

  get status(): UpstreamStatus {
    if (this.opening) return 'connecting';
    if (this.failure) return 'error';
    return this.client ? 'ready' : 'disconnected';
  }

  get error(): RialtoError | undefined {
    return this.failure;
  }

  /** In milliseconds since the epoch; undefined while there is no connection. */
  get connectedAt(): number | undefined {
    return this.client && this.since;
  }

  /** Number of running calls. */
  get load(): number {
    return this.callers.count;
  }

  /** Duration of the last ping in milliseconds; undefined before the first. */
  get lastPingMs(): number | undefined {
    return this.healthCheck.lastMs;
  }

  /** Era of the protocol revision of the connection; undefined before it is open. */
  get era(): 'legacy' | 'modern' | undefined {
    return eraOf(this.client);
  }

  /** When its last use ended, as `systemClock.elapsed` counts; undefined while a call or a subscription uses it. */
  get idleSince(): number | undefined {
    return this.subscriptions?.isWatching ? undefined : this.workedUntil;
  }

  /** The same, but only while subscriptions use it and no call does. */
  get watchingSince(): number | undefined {
    return this.subscriptions?.isWatching ? this.workedUntil : undefined;
  }

  private get workedUntil(): number | undefined {
    return this.callers.isIdle && !this.opening ? this.usedAt : undefined;
  }

  /** Reads what the server offers. Throws as `request` does. */
  async offer(): Promise<FoundOffer> {
    const client = await this.openWithin(offerMs, undefined);
    const capabilities = client.getServerCapabilities() ?? {};
    const until = systemClock.elapsed() + offerMs;
    const request = (method: string, params: JsonObject) => {
      const fullParams = { ...params, ...(this.era === 'modern' && { _meta: offering }) };
      const timeoutMs = Math.max(1, until - systemClock.elapsed());
      return this.request(method, fullParams, { timeoutMs, isOfGateway: true });
    };
    const instructions = client.getInstructions();
    const description = {
      serverInfo: { ...client.getServerVersion() },
      ...(instructions !== undefined && { instructions }),
      capabilities: capabilities as JsonObject,
    };
    requireShort(description);
    return {
      protocolVersion: client.getNegotiatedProtocolVersion() ?? '',
      ...description,
      ...(this.wantsInitialize && { wantsInitialize: true as const }),
      ...(await readOffers(request, capabilities as JsonObject)),
    };
  }

  /**
   * Sends a request. Throws `unavailable` during the delay after a failure, `remote_transport`, `remote_timeout`,
   * `remote_invalid_response`, `canceled`, and `remote_error` with the error of the server.
   */
  async request(method: string, params: JsonObject, options: CallOptions): Promise<JsonObject> {
    const { peer, isOfGateway = false } = options;
    let leaveSlot: (() => void) | undefined;
    try {
      // No await when no slot is needed: `load` counts the call at once, so that no other call chooses this connection.
      const entered = this.slot.enterCall(options);
      if (entered) leaveSlot = await entered;
      this.callers.addCall(peer);
      try {
        for (let isRepeated = false; ; isRepeated = true) {
          const client = await this.openFor(options);
          const sent = await this.clients.sendRequest(client, method, params, options);
          if ('answer' in sent) {
            this.failure = undefined;
            return sent.answer;
          }
          if (isRepeated) throw this.failed(sent.thrown);
          this.requireForgotten(sent.thrown, options);
          if (this.client === client) {
            this.detach();
            this.clients.setAside(client);
          }
        }
      } finally {
        this.callers.removeCall(peer);
      }
    } finally {
      leaveSlot?.();
      if (!isOfGateway) {
        this.usedAt = systemClock.elapsed();
        this.slot.stirred();
      }
    }
  }

  /** Sends a notification. Throws as `request` does. */
  async notifyServer(method: string, params: JsonObject, { timeoutMs, signal }: CallOptions): Promise<void> {
    const client = await this.openWithin(timeoutMs, signal);
    await client.notification({ method, params }).catch((thrown: unknown) => Promise.reject(this.failed(thrown)));
  }

  /** Subscribes to changes of a resource, now and after each reopening. */
  watch(uri: string): void {
    this.subscriptions?.watch(uri);
  }

  unwatch(uri: string): void {
    this.subscriptions?.unwatch(uri);
  }

  /** Opens the connection, unless it is open. Throws as `request` does. */
  async ready({ timeoutMs, signal }: CallOptions): Promise<void> {
    await this.openWithin(timeoutMs, signal);
  }

  /** Closes the connection for good; waiting calls fail with `unavailable`. */
  async close(): Promise<void> {
    this.isClosed = true;
    this.subscriptions?.end();
    await this.release();
  }

  /** Closes the connection until it is needed again. */
  async release(): Promise<void> {
    const client = this.detach();
    await this.clients.close(client);
  }

  /** Detaches the client, so that no new call uses it. */
  private detach(): Client | undefined {
    this.refresh.stop();
    clearTimeout(this.reopening);
    const { client } = this;
    this.client = undefined;
    this.stopListening();
    this.slot.free();
    return client;
  }

  /** Returns when the server refused a request because it forgot the session. Throws any other failure. */
  private requireForgotten(thrown: unknown, { signal }: CallOptions): void {
    if (signal?.aborted) throw new RialtoError('canceled', { cause: thrown });
    if (this.isClosed) throw this.closedError(thrown);
    if (this.era === 'modern' || !isSessionGone(thrown)) throw this.failed(thrown);
  }

  /** Opens the connection and runs `opened`; repeats it when the connection was replaced meanwhile. */
  private async openFor({ timeoutMs, signal, opened }: CallOptions, times = 3): Promise<Client> {
    const client = this.client && !signal?.aborted ? this.client : await this.openWithin(timeoutMs, signal);
    await opened?.(this, { timeoutMs, signal });
    return this.client === client || times === 1 ? client : this.openFor({ timeoutMs, signal, opened }, times - 1);
  }

  /** Waits for the connection no longer than the call may wait for its answer. */
  private async openWithin(timeoutMs: number, signal: AbortSignal | undefined): Promise<Client> {
    const timedOut = (): RialtoError =>
      signal?.aborted ? new RialtoError('canceled') : (this.slot.refusal ?? new RialtoError('remote_timeout'));
    return this.slot.waitedFor(() => withTimeout(timeoutMs, [signal], () => this.openClient(), timedOut));
  }

  private openClient(): Promise<Client> {
    if (this.isClosed) return Promise.reject(this.closedError());
    if (this.client) return Promise.resolve(this.client);
    const waitMs = this.waitUntil - systemClock.elapsed();
    if (!this.opening && this.failure && (waitMs > 0 || !this.options.autoReconnect))
      return Promise.reject(resting(this.failure, this.options, waitMs));
    this.opening ??= this.connect().finally(() => (this.opening = undefined));
    return this.opening;
  }

  private async connect(): Promise<Client> {
    await this.slot.takeSlot(this);
    const timeout = timeoutSignal(this.times.connectMs, []);
    const attempts: Attempt<ConnectedClient>[] = [];
    const start = (approach: Approach, isPatient = false): Attempt<ConnectedClient> => {
      if (timeout.signal.aborted) throw tooSlow();
      const attempt = this.startAttempt(approach, isPatient);
      attempts.push(attempt);
      return attempt;
    };
    const { transportKind: transport = 'websocket' } = this.options;
    const { approach, wantsInitialize: seemsLegacy } = this;
    try {
      const plan = { transport, approach, seemsLegacy, hushMs: this.times.hushMs, start };
      const { opened, wantsInitialize } = await raceSignal(timeout.signal, openInEra(plan), tooSlow);
      this.opened(opened, wantsInitialize);
      return opened.client;
    } catch (thrown) {
      for (const attempt of attempts) attempt.close();
      this.isLegacyUntil = -Infinity;
      this.slot.free();
      this.backOff();
      throw this.failed(thrown);
    } finally {
      timeout.end();
    }
  }

  private startAttempt(approach: Approach, isPatient: boolean): Attempt<ConnectedClient> {
    const { connectMs, probeMs } = this.times;
    return attemptClient({
      approach,
      capabilities: capabilitiesOf(this.options.owner, this.roots),
      transport: this.options.transport,
      connectMs,
      probeMs: isPatient || approach === 'modern' ? connectMs : probeMs,
      prepare: (client) => {
        client.fallbackNotificationHandler = (notification) => Promise.resolve(this.heard(notification));
        client.fallbackRequestHandler = ({ method, params = {} }, { mcpReq }) =>
          this.callers.asked(method, params as JsonObject, mcpReq.signal);
        client.onclose = () => this.lost(client);
      },
    });
  }

  private opened({ client, transport }: ConnectedClient, wantsInitialize: boolean): void {
    if (this.isClosed) throw this.closedError();
    const wasTested = this.approach === 'auto';
    this.client = client;
    this.since = systemClock.now();
    this.usedAt = systemClock.elapsed();
    this.failures = 0;
    this.failure = undefined;
    // It is unknown which revision a program speaks that was slow to start.
    const { discovery } = transport;
    this.wantsInitialize = wantsInitialize || discovery === 'unanswered';
    if (wasTested && this.era === 'legacy' && discovery !== 'late')
      this.isLegacyUntil = systemClock.elapsed() + legacyMs;
    this.refresh.connectionOpened();
    this.subscriptions?.connectionOpened(client);
    this.healthCheck.connectionOpened(client);
  }

  private get approach(): Approach {
    const { era = 'auto' } = this.options;
    return era === 'auto' && systemClock.elapsed() < this.isLegacyUntil ? 'legacy' : era;
  }

  private stopListening(): void {
    this.subscriptions?.closed();
    this.healthCheck.closed();
  }

  /** Handles a missing answer to a ping. A server that refuses because it forgot the session is still alive. */
  private async pingFailed(client: Client, thrown: unknown): Promise<void> {
    if (this.client !== client) return;
    const isGone = this.era === 'legacy' && isSessionGone(thrown);
    if (!isGone) this.failed(thrown);
    await this.release();
    if (!isGone) this.backOff();
    else if (this.options.autoReconnect) await this.openClient().catch(() => undefined);
  }

  /** Handles an end that the gateway did not cause; `detach` runs before the gateway closes a client. */
  private lost(client: Client): void {
    if (this.client !== client) return;
    this.client = undefined;
    this.stopListening();
    this.slot.free();
    this.failure = new RialtoError('remote_transport', { message: 'the MCP server closed the connection' });
    this.backOff();
  }

  /** Starts the delay after a failure. A connection that was open before reopens without a call then (AE-20). */
  private backOff(): void {
    const pauseMs = this.times.pauseMs(++this.failures);
    this.waitUntil = systemClock.elapsed() + pauseMs;
    if (this.isClosed || this.since === undefined || !this.options.autoReconnect) return;
    clearTimeout(this.reopening);
    this.reopening = setTimeout(() => {
      // Timers count whole milliseconds: they may end a little before the clock says so.
      this.waitUntil = 0;
      void this.openClient().catch(() => undefined);
    }, pauseMs).unref();
  }

  private heard({ method, params = {} }: Notification): void {
    this.callers.told(method, params as JsonObject);
    this.options.heard?.(method, params as JsonObject);
    if (!this.isClosed) this.refresh.heard(method);
  }

  /** Records a failure of the connection. An error that the server sent is no such failure. */
  private failed(thrown: unknown): RialtoError {
    const error = upstreamError(thrown, this.options.server);
    if (error.code !== 'remote_error' && error.code !== 'canceled') this.failure = error;
    return error;
  }

  private closedError(cause?: unknown): RialtoError {
    return takenAway(this.options.server, cause);
  }
}
