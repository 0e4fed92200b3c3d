import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { OrgId } from '../../kernel/ids.js';
import { packageRoot } from '../../platform/telemetry/version.js';
import type { SealAnswer, SealQuestion } from './seal-worker.js';

/** Path of the program of the thread: always the built file, because Node cannot run the source. */
const entry = join(packageRoot, 'dist', 'src', 'audit', 'sealing', 'seal-worker.js');
/** How long the thread is kept without work: it takes about 25 MiB. */
const idleMs = 60_000;

/**
 * Seals events in a thread with a connection of its own. Reading, hashing and storing them takes an eighth of the main
 * thread of a busy process.
 */
export class SealThread {
  private worker?: Worker;
  private idle?: NodeJS.Timeout;
  private lastId = 0;
  private readonly asked = new Map<number, (sealed: number | undefined) => void>();

  /** @param url address of the database. */
  constructor(private readonly url: string) {}

  /** As `sealWaiting`; undefined when the thread failed. Then nothing, or a part of the events, is sealed. */
  seal(org: OrgId, wait: boolean): Promise<number | undefined> {
    clearTimeout(this.idle);
    const worker = (this.worker ??= this.started());
    const question: SealQuestion = { id: ++this.lastId, org, wait };
    return new Promise((resolve) => {
      this.asked.set(question.id, resolve);
      worker.postMessage(question);
    });
  }

  async stop(): Promise<void> {
    clearTimeout(this.idle);
    await this.worker?.terminate();
  }

  private started(): Worker {
    const worker = new Worker(entry, { workerData: this.url, execArgv: [], name: 'audit-seal' });
    worker.unref();
    worker.on('message', ({ id, sealed }: SealAnswer) => this.settle(id, sealed));
    worker.on('error', () => undefined); // `exit` follows
    worker.once('exit', () => {
      this.worker = undefined;
      for (const id of this.asked.keys()) this.settle(id, undefined);
    });
    return worker;
  }

  private settle(id: number, sealed: number | undefined): void {
    this.asked.get(id)?.(sealed);
    this.asked.delete(id);
    clearTimeout(this.idle);
    if (this.asked.size === 0) this.idle = setTimeout(() => void this.stop(), idleMs).unref();
  }
}
