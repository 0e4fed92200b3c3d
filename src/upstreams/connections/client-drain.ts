import type { Client } from '@modelcontextprotocol/client';

/**
 * The calls of each client of a line. One whose session its server forgot is closed after the last of them: whoever hears from the server
 * that it did nothing may ask again, whoever is cut off may not.
 */
export class ClientDrain {
  private readonly calls = new Map<Client, number>();
  private readonly aside = new Set<Client>();

  async during<Result>(client: Client, call: () => Promise<Result>): Promise<Result> {
    this.calls.set(client, (this.calls.get(client) ?? 0) + 1);
    try {
      return await call();
    } finally {
      const left = this.calls.get(client)! - 1;
      if (left > 0) this.calls.set(client, left);
      else this.calls.delete(client);
      if (left === 0 && this.aside.delete(client)) void closed(client);
    }
  }

  /** Closes a client that is asked nothing more as soon as nobody waits for it. */
  setAside(client: Client): void {
    if (this.calls.has(client)) this.aside.add(client);
    else void closed(client);
  }

  /** Closes one, and those that were set aside, now. */
  async close(client?: Client): Promise<void> {
    const all = [...this.aside, ...(client ? [client] : [])];
    this.aside.clear();
    await Promise.all(all.map(closed));
  }
}

function closed(client: Client): Promise<void> {
  return client.close().catch(() => undefined);
}
