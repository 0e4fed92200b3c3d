import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** Pipelined requests of all connections that are served in one turn of the event loop. */
const perTurn = 20;

/**
 * Serves the requests of a connection that arrive before its earlier ones are answered, a few in each turn of the event
 * loop. One read may have thousands of them.
 */
export class PipelinedRequests {
  private readonly open = new WeakMap<Duplex, number>();
  private readonly waiting: (() => void)[] = [];

  /** Serves a request at once, or after the earlier ones of its connection when these are still open. */
  serve({ socket }: IncomingMessage, response: ServerResponse, handle: () => void): void {
    const open = this.open.get(socket) ?? 0;
    this.open.set(socket, open + 1);
    response.once('close', () => this.open.set(socket, this.open.get(socket)! - 1));
    if (open === 0) handle();
    else if (this.waiting.push(handle) === 1) setImmediate(this.serveSome);
  }

  private readonly serveSome = (): void => {
    for (const handle of this.waiting.splice(0, perTurn)) handle();
    if (this.waiting.length > 0) setImmediate(this.serveSome);
  };
}
