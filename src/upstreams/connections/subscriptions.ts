import type { Client, McpSubscription } from '@modelcontextprotocol/client';
import { anything } from '../transports/anything.js';
import { pauseAfter } from './backoff.js';

const askMs = 30_000;

/** The line that they belong to. */
export interface SubscribedConnection {
  /** Opens it, unless it is open. */
  open(): Promise<unknown>;
  /** A watched resource may have changed. */
  updated(uri: string): void;
}

/**
 * What a line does to hear of changes: a server of the 2025 era tells of its lists by itself and of the resources one subscribed to; the
 * 2026-07-28 revision has one stream for both, opened again when it ends or other resources are watched. A line that ends, for a call to
 * another program it may be, is opened again later for what is watched.
 */
export class Subscriptions {
  private readonly watched = new Set<string>();
  private client?: Client;
  private stream?: McpSubscription;
  private turn: Promise<void> = Promise.resolve();
  private isDue = false;
  private failures = 0;
  private again?: NodeJS.Timeout;
  private hasMissed = false;

  constructor(
    private readonly connection: SubscribedConnection,
    private readonly pauseMs = 30_000,
  ) {}

  get isWatching(): boolean {
    return this.watched.size > 0;
  }

  opened(client: Client): void {
    this.client = client;
    this.failures = 0;
    if (isModern(client)) this.listenSoon();
    else for (const uri of this.watched) void this.ask('resources/subscribe', uri);
    if (this.hasMissed) for (const uri of this.watched) this.connection.updated(uri);
    this.hasMissed = false;
  }

  closed(): void {
    this.client = undefined;
    this.stream = undefined;
    this.hasMissed = this.isWatching;
    this.openLater();
  }

  /** The line is never opened again. */
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
    clearTimeout(this.again);
    if (this.isWatching) this.again = setTimeout(() => this.keepOpen(), this.pauseMs).unref();
  }

  private changed(method: string, uri: string): void {
    if (!this.client) return;
    if (isModern(this.client)) this.listenSoon();
    else void this.ask(method, uri);
  }

  /** A server that will not is heard of by its other notices alone. */
  private async ask(method: string, uri: string): Promise<void> {
    await this.client?.request({ method, params: { uri } }, anything, { timeout: askMs }).catch(() => undefined);
  }

  /** Once for all that changes until its turn comes. */
  private listenSoon(): void {
    if (this.isDue) return;
    this.isDue = true;
    this.turn = this.turn.then(() => {
      this.isDue = false;
      return this.listen();
    });
  }

  private async listen(): Promise<void> {
    const { client, stream: before } = this;
    if (!client) return;
    const filter = this.filterFor(client);
    try {
      const stream = Object.keys(filter).length > 0 ? await client.listen(filter, { timeout: askMs }) : undefined;
      if (this.client !== client) return void (await stream?.close());
      this.stream = stream;
      this.failures = 0;
      void stream?.closed.then(() => this.ended(stream));
      await before?.close();
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
    clearTimeout(this.again);
    this.again = setTimeout(
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

function isModern(client: Client): boolean {
  return (client.getNegotiatedProtocolVersion() ?? '') >= '2026';
}
