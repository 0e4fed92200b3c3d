import type { Client, McpSubscription } from '@modelcontextprotocol/client';
import { anyValue } from '../transports/any-value.js';
import { pauseAfter } from './backoff.js';
import { eraOf } from './client-calls.js';

const requestMs = 30_000;

/** Connection that the subscriptions belong to. */
export interface SubscribedConnection {
  /** Opens the connection, unless it is open. */
  open(): Promise<unknown>;
  /** Called when a watched resource may have changed. */
  updated(uri: string): void;
}

/**
 * Subscriptions of a connection to changes. A server of the 2025 era notifies of changed lists without a request, and
 * of resources that were subscribed to. The 2026-07-28 revision has one stream for both; it is opened again when it
 * ends or when the watched resources change. When the connection ends, for example because its program gave its slot to
 * another one, it is opened again later for the watched resources.
 */
export class Subscriptions {
  private readonly watched = new Set<string>();
  private client?: Client;
  private stream?: McpSubscription;
  private turn: Promise<void> = Promise.resolve();
  private isScheduled = false;
  private failures = 0;
  private retry?: NodeJS.Timeout;
  private hasMissed = false;

  constructor(
    private readonly connection: SubscribedConnection,
    private readonly pauseMs = 30_000,
  ) {}

  get isWatching(): boolean {
    return this.watched.size > 0;
  }

  connectionOpened(client: Client): void {
    this.client = client;
    this.failures = 0;
    if (eraOf(client) === 'modern') this.listenSoon();
    else for (const uri of this.watched) void this.send('resources/subscribe', uri);
    if (this.hasMissed) for (const uri of this.watched) this.connection.updated(uri);
    this.hasMissed = false;
  }

  closed(): void {
    this.client = undefined;
    this.stream = undefined;
    this.hasMissed = this.isWatching;
    this.openLater();
  }

  /** Called when the connection is closed for good. */
  end(): void {
    this.watched.clear();
  }

  watch(uri: string): void {
    this.watched.add(uri);
    this.changed('resources/subscribe', uri);
    this.keepOpen();
  }

  unwatch(uri: string): void {
    this.watched.delete(uri);
    this.changed('resources/unsubscribe', uri);
  }

  private keepOpen(): void {
    void this.connection.open().catch(() => this.openLater());
  }

  private openLater(): void {
    clearTimeout(this.retry);
    if (this.isWatching) this.retry = setTimeout(() => this.keepOpen(), this.pauseMs).unref();
  }

  private changed(method: string, uri: string): void {
    if (!this.client) return;
    if (eraOf(this.client) === 'modern') this.listenSoon();
    else void this.send(method, uri);
  }

  /** Sends a request. Ignores a refusal: the server then sends only its other notifications. */
  private async send(method: string, uri: string): Promise<void> {
    await this.client?.request({ method, params: { uri } }, anyValue, { timeout: requestMs }).catch(() => undefined);
  }

  /** Schedules one new stream for all changes until its turn comes. */
  private listenSoon(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    this.turn = this.turn.then(() => {
      this.isScheduled = false;
      return this.openStream();
    });
  }

  private async openStream(): Promise<void> {
    const { client, stream: previous } = this;
    if (!client) return;
    const filter = this.filterFor(client);
    try {
      const stream = Object.keys(filter).length > 0 ? await client.listen(filter, { timeout: requestMs }) : undefined;
      if (this.client !== client) return void (await stream?.close());
      this.stream = stream;
      this.failures = 0;
      void stream?.closed.then(() => this.ended(stream));
      await previous?.close();
    } catch {
      this.listenLater(client);
    }
  }

  private ended(stream: McpSubscription): void {
    if (this.stream !== stream || !this.client) return;
    this.stream = undefined;
    this.listenLater(this.client);
  }

  private listenLater(client: Client): void {
    clearTimeout(this.retry);
    this.retry = setTimeout(
      () => {
        if (this.client === client) this.listenSoon();
      },
      pauseAfter(++this.failures, Math.random()),
    ).unref();
  }

  private filterFor(client: Client): Record<string, true | string[]> {
    const { tools, resources, prompts } = client.getServerCapabilities() ?? {};
    return {
      ...(tools?.listChanged && { toolsListChanged: true }),
      ...(resources?.listChanged && { resourcesListChanged: true }),
      ...(prompts?.listChanged && { promptsListChanged: true }),
      ...(this.isWatching && { resourceSubscriptions: [...this.watched] }),
    };
  }
}
