import type { Client } from '@modelcontextprotocol/client';
import { anything } from '../transports/anything.js';
import { isMoreTalkative } from './client-requests.js';

/** A server of the 2025 era logs at one level for all of a line: at the most talkative that any caller wished. */
export class LogLevels {
  private readonly levels = new WeakMap<Client, string>();

  /** Asks for a level that tells more than the present one. A server that refuses logs as it likes. */
  async heed(client: Client, level: string | undefined, timeout: number): Promise<void> {
    if (level === undefined || !client.getServerCapabilities()?.logging) return;
    if (!isMoreTalkative(level, this.levels.get(client))) return;
    this.levels.set(client, level);
    await client
      .request({ method: 'logging/setLevel', params: { level } }, anything, { timeout })
      .catch(() => undefined);
  }
}
