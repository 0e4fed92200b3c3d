import type { Client } from '@modelcontextprotocol/client';
import { anyValue } from '../transports/any-value.js';
import { isMoreTalkative } from './client-requests.js';

/**
 * Sets the log level of servers of the 2025 era. Such a server has one level per connection: the most verbose one that
 * any caller asked for.
 */
export class LogLevels {
  private readonly levels = new WeakMap<Client, string>();

  /** Requests a level that is more verbose than the current one. Ignores a server that refuses. */
  async heed(client: Client, level: string | undefined, timeout: number): Promise<void> {
    if (level === undefined || !client.getServerCapabilities()?.logging) return;
    if (!isMoreTalkative(level, this.levels.get(client))) return;
    this.levels.set(client, level);
    await client
      .request({ method: 'logging/setLevel', params: { level } }, anyValue, { timeout })
      .catch(() => undefined);
  }
}
