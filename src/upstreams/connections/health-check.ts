import type { Client } from '@modelcontextprotocol/client';
import { systemClock } from '../../kernel/clock.js';
import { anyValue } from '../transports/any-value.js';
import { upstreamError } from './upstream-error.js';

const retryMs = 1_000;
const intervalMs = 30_000;
/** Timeout of one ping (AE-67). */
const answerMs = 5_000;

export interface HealthCheckOptions {
  readonly server: string;
  /** Whether calls are running; these notice a dead server themselves. */
  readonly isBusy: () => boolean;
  /** Called when the server did not answer. @param thrown the error of the ping. */
  readonly onSilence: (client: Client, thrown: unknown) => void;
}

/** Pings a server at intervals while no call is running on its connection. */
export class HealthCheck {
  /** Duration of the last ping in milliseconds. */
  lastMs?: number;
  private client?: Client;
  private next?: NodeJS.Timeout;

  constructor(private readonly options: HealthCheckOptions) {}

  connectionOpened(client: Client): void {
    this.client = client;
    this.checkIn(retryMs);
  }

  closed(): void {
    this.client = undefined;
    clearTimeout(this.next);
  }

  private checkIn(ms: number): void {
    clearTimeout(this.next);
    this.next = setTimeout(() => void this.checkConnection(), ms).unref();
  }

  private async checkConnection(): Promise<void> {
    const { client } = this;
    const { isBusy, onSilence } = this.options;
    if (!client) return;
    if (isBusy()) return this.checkIn(retryMs);
    const thrown = await this.ping(client);
    if (this.client !== client) return;
    if (thrown !== undefined && !isBusy()) onSilence(client, thrown);
    else this.checkIn(intervalMs);
  }

  /**
   * Pings the server and returns the failure. The 2026-07-28 revision has no ping, so `server/discover` is sent
   * instead. A protocol error counts as an answer.
   */
  private async ping(client: Client): Promise<unknown> {
    const isModern = (client.getNegotiatedProtocolVersion() ?? '') >= '2026';
    const since = systemClock.elapsed();
    try {
      await client.request({ method: isModern ? 'server/discover' : 'ping' }, anyValue, { timeout: answerMs });
    } catch (thrown) {
      if (upstreamError(thrown, this.options.server).code !== 'remote_error') return thrown;
    }
    this.lastMs = Math.round(systemClock.elapsed() - since);
    return undefined;
  }
}
