import { createServer, type IncomingMessage, type ServerOptions } from 'node:http';
import { Server as NetServer } from 'node:net';
import { ExpressAdapter } from '@nestjs/platform-express';
import { ResponseOrder } from './response-order.js';
import { ServerDrain } from './server-drain.js';

/** How long a client may take to send a request, in milliseconds. */
export const requestTimeoutMs = 30_000;
export const maxConnections = 10_000;

/** Options of Node that are missing in the types of version 20. */
interface NewerOptions extends ServerOptions {
  /**
   * Decides whether a request with an `Upgrade` header is emitted as `upgrade`; since 22.21 and 24.9. Older versions
   * emit all of them.
   */
  readonly shouldUpgradeCallback: (request: IncomingMessage) => boolean;
}

/** The server of Express, with the limits of the gateway. */
export class FrontServer extends ExpressAdapter {
  /** Decides which requests with an `Upgrade` header are emitted as `upgrade`; none until it is set. */
  takesUpgrade: (request: IncomingMessage) => boolean = () => false;

  /** Order of the responses; set when the server is made. */
  order!: ResponseOrder;
  private drain!: ServerDrain;

  override initHttpServer(): void {
    const options: NewerOptions = {
      // Interval in which Node looks for slow requests; the default is half a minute (abuse case 34).
      connectionsCheckingInterval: 3_000,
      headersTimeout: 10_000,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: 65_000,
      shouldUpgradeCallback: (request) => this.takesUpgrade(request),
    };
    const server = createServer(options, this.getInstance());
    server.maxRequestsPerSocket = 10_000;
    server.maxConnections = maxConnections;
    this.setHttpServer(server);
    this.order = new ResponseOrder(server);
    this.drain = new ServerDrain(server, this.order);
  }

  /**
   * Starts to close: each connection ends after its last response, idle ones at once. New connections are still
   * accepted.
   */
  beginToClose(): void {
    this.drain.begin();
  }

  /** Stops listening and resolves when every connection has ended. */
  override close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      // Uses the method of the base class: the one of `http.Server` ends connections that still have data to write.
      NetServer.prototype.close.call(this.getHttpServer(), () => resolve());
    });
    this.drain.begin();
    return closed;
  }

  /** Ends every connection at once. */
  cut(): void {
    this.drain.cut();
  }
}
