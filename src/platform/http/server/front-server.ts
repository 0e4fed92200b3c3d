import { createServer, type IncomingMessage, type ServerOptions } from 'node:http';
import { Server as NetServer } from 'node:net';
import { ExpressAdapter } from '@nestjs/platform-express';
import { ResponseOrder } from './response-order.js';
import { ServerDrain } from './server-drain.js';

/** Options of Node that its types of version 20 do not have. */
interface NewerOptions extends ServerOptions {
  /** Tells whether a request with an `Upgrade` header comes as event `upgrade`; since 22.21 and 24.9. In older versions each one does. */
  readonly shouldUpgradeCallback: (request: IncomingMessage) => boolean;
}

/** The server of Express, made with the limits of the gateway. */
export class FrontServer extends ExpressAdapter {
  /** Decides which requests with an `Upgrade` header come as event `upgrade`; none until it is set. */
  takesUpgrade: (request: IncomingMessage) => boolean = () => false;

  /** Order of the responses; set once the server is made. */
  order!: ResponseOrder;
  private drain!: ServerDrain;

  override initHttpServer(): void {
    const options: NewerOptions = {
      // Node looks for slow requests this often only, by default each half minute (abuse case 34).
      connectionsCheckingInterval: 3_000,
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 65_000,
      shouldUpgradeCallback: (request) => this.takesUpgrade(request),
    };
    const server = createServer(options, this.getInstance());
    server.maxRequestsPerSocket = 10_000;
    server.maxConnections = 10_000;
    this.setHttpServer(server);
    this.order = new ResponseOrder(server);
    this.drain = new ServerDrain(server, this.order);
  }

  /** From now on each connection ends behind its last response, and idle ones at once. New ones are still accepted. */
  beginToClose(): void {
    this.drain.begin();
  }

  /** Stops listening and resolves when every connection has ended. */
  override close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      // The method of the base class: that of `http.Server` ends connections that are still written to.
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
