import type { Client } from '@modelcontextprotocol/client';
import { systemClock } from '../../kernel/clock.js';
import { anything } from '../transports/anything.js';
import { upstreamError } from './upstream-error.js';

const soonMs = 1_000;
const everyMs = 30_000;
/** AE-67. */
const answerMs = 5_000;

export interface HealthCheckOptions {
  readonly server: string;
  /** Whoever waits for an answer notices by it that there is nobody. */
  readonly isBusy: () => boolean;
  /** Nobody said that it is there. @param thrown what came in place of an answer. */
  readonly onSilence: (client: Client, thrown: unknown) => void;
}

/** Asks a server now and then whether it is there, while nobody asks it anything else. */
export class HealthCheck {
  /** How long the last answer took, in milliseconds. */
  lastMs?: number;
  private client?: Client;
  private next?: NodeJS.Timeout;

  constructor(private readonly options: HealthCheckOptions) {}

  opened(client: Client): void {
    this.client = client;
    this.checkIn(soonMs);
  }

  closed(): void {
    this.client = undefined;
    clearTimeout(this.next);
  }

  private checkIn(ms: number): void {
    clearTimeout(this.next);
    this.next = setTimeout(() => void this.check(), ms).unref();
  }

  private async check(): Promise<void> {
    const { client } = this;
    const { isBusy, onSilence } = this.options;
    if (!client) return;
    if (isBusy()) return this.checkIn(soonMs);
    const thrown = await this.ask(client);
    if (this.client !== client) return;
    if (thrown !== undefined && !isBusy()) onSilence(client, thrown);
    else this.checkIn(everyMs);
  }

  /** The 2026-07-28 revision has no ping. An error of the protocol is an answer too. */
  private async ask(client: Client): Promise<unknown> {
    const isModern = (client.getNegotiatedProtocolVersion() ?? '') >= '2026';
    const since = systemClock.elapsed();
    try {
      await client.request({ method: isModern ? 'server/discover' : 'ping' }, anything, { timeout: answerMs });
    } catch (thrown) {
      if (upstreamError(thrown, this.options.server).code !== 'remote_error') return thrown;
    }
    this.lastMs = Math.round(systemClock.elapsed() - since);
    return undefined;
  }
}
