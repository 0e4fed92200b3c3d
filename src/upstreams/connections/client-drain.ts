import type { Client } from '@modelcontextprotocol/client';

/**
 * Counts the calls of each client of a connection. A client with a session that its server forgot is closed only after
 * its last call: such a call may still receive a refusal, after which it can be sent again; a call that is cut off
 * cannot.
 */
export class ClientDrain {
  private readonly calls = new Map<Client, number>();
  private readonly retired = new Set<Client>();

  async during<Result>(client: Client, call: () => Promise<Result>): Promise<Result> {
    this.calls.set(client, (this.calls.get(client) ?? 0) + 1);
    try {
      return await call();
    } finally {
      const left = this.calls.get(client)! - 1;
      if (left > 0) this.calls.set(client, left);
      else this.calls.delete(client);
      if (left === 0 && this.retired.delete(client)) void closeQuietly(client);
    }
  }

  /** Closes a client after its last running call; it gets no new calls. */
  setAside(client: Client): void {
    if (this.calls.has(client)) this.retired.add(client);
    else void closeQuietly(client);
  }

  /** Closes a client and all clients that were set aside, at once. */
  async close(client?: Client): Promise<void> {
    const all = [...this.retired, ...(client ? [client] : [])];
    this.retired.clear();
    await Promise.all(all.map(closeQuietly));
  }
}

function closeQuietly(client: Client): Promise<void> {
  return client.close().catch(() => undefined);
}
