import pg from 'pg';

interface PoolInternals {
  Client: new (config?: pg.ClientConfig) => { connect(callback: (error?: Error) => void): void };
  _isFull(): boolean;
  _pulseQueue(): void;
}

/**
 * A pool that opens its connections one after another. The pool of node-postgres opens one for each statement that
 * finds none free, although another is free again long before the new one is ready: at start, ten short statements open
 * seven connections, which cost the server most of its processor time.
 *
 * Missing public API: the condition under which a pool opens a connection.
 * Canary test: `test/medium/library-internals.spec.ts`.
 */
export class PatientPool extends pg.Pool {
  constructor(config?: pg.PoolConfig) {
    super(config);
    const internals = this as unknown as PoolInternals;
    const isFull = internals._isFull.bind(this);
    let isOpening = false;
    internals.Client = class extends internals.Client {
      override connect(connected: (error?: Error) => void): void {
        isOpening = true;
        super.connect((error) => {
          isOpening = false;
          connected(error);
          internals._pulseQueue();
        });
      }
    };
    internals._isFull = () => isOpening || isFull();
  }
}
