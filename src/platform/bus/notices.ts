import { EventEmitter } from 'node:events';
import pg from 'pg';
import { parseExact } from '../../protocol/exact-integers.js';
import { z } from 'zod';
import { notices, type Notice, type NoticeName } from '../../kernel/notices.js';
import { breakLine, requireWritable, watchLine } from '../database/line-watch.js';
import type { Tx } from '../database/tx.js';
import type { Logger } from '../telemetry/logger.js';

const channel = 'rialto_notices';
/** PostgreSQL refuses a payload of 8,000 bytes. */
const maxPayload = 7_500;
const coalesceMs = 3;
const reconnectMs = 500;

const envelope = z.object({ from: z.string(), told: z.array(z.tuple([z.string(), z.unknown()])) });

type Told = { name: NoticeName; payload: Notice<NoticeName> };

/**
 * Facts for whoever waits: listeners of this process at once, other processes by one coalesced pg_notify. Hints only: what
 * they name is read from rows, and whoever depends on one has a slow poll behind it (decisions: notices).
 */
export class Notices {
  private readonly emitter = new EventEmitter().setMaxListeners(0);
  private readonly origin = Math.random().toString(36).slice(2);
  private outbox: Told[] = [];
  private timer?: NodeJS.Timeout;
  private listener?: pg.Client;
  private closed = false;

  constructor(
    private readonly pool: Pick<pg.Pool, 'query'>,
    private readonly directUrl: string,
    private readonly log: Logger,
  ) {}

  on<Name extends NoticeName>(name: Name, listen: (payload: Notice<Name>) => void): () => void {
    this.emitter.on(name, listen);
    return () => void this.emitter.off(name, listen);
  }

  /** Tells after the commit of `tx`; without one at once. */
  tell<Name extends NoticeName>(tx: Tx | undefined, name: Name, payload: Notice<Name>): void {
    if (tx) tx.afterCommit(() => this.send(name, payload));
    else this.send(name, payload);
  }

  private send(name: NoticeName, payload: Notice<NoticeName>): void {
    this.emit({ name, payload });
    this.outbox.push({ name, payload });
    this.timer ??= setTimeout(() => void this.flush(), coalesceMs).unref();
  }

  private emit({ name, payload }: Told): void {
    for (const listen of this.emitter.listeners(name)) {
      try {
        (listen as (payload: unknown) => void)(payload);
      } catch (err) {
        this.log.error({ err, notice: name }, 'a notice listener threw');
      }
    }
  }

  private async flush(): Promise<void> {
    this.timer = undefined;
    const batch = this.outbox;
    this.outbox = [];
    for (const text of split(this.origin, batch)) {
      try {
        await this.pool.query({ name: 'notices', text: 'select pg_notify($1, $2)', values: [channel, text] });
      } catch (err) {
        this.log.warn({ err }, 'notices for other processes were lost; their polls will find the rows');
      }
    }
  }

  /** Listens to other processes and reconnects for as long as the process lives. Rejects when the first connection fails. */
  async listen(): Promise<void> {
    const client = await this.connect();
    this.listener = client;
    client.once('end', () => this.reconnect());
  }

  private async connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.directUrl,
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      application_name: 'rialto:notices',
    });
    client.on('error', () => undefined);
    client.on('notification', ({ payload }) => this.receive(payload ?? ''));
    try {
      await client.connect();
      watchLine(client);
      await requireWritable(client);
      await client.query(`listen ${channel}`);
      return client;
    } catch (error) {
      breakLine(client);
      throw error;
    }
  }

  private reconnect(): void {
    if (this.closed) return;
    setTimeout(() => {
      if (this.closed) return;
      this.listen().then(
        () => (this.closed ? this.listener?.end() : this.missed()),
        () => this.reconnect(),
      );
    }, reconnectMs).unref();
  }

  /** Notices may have been lost while nobody listened: caches are told to forget everything. */
  private missed(): void {
    this.emitter.emit('missed');
  }

  onMissed(listen: () => void): void {
    this.emitter.on('missed', listen);
  }

  private receive(text: string): void {
    const message = envelope.safeParse(parsed(text));
    if (!message.success || message.data.from === this.origin) return;
    for (const [name, payload] of message.data.told) {
      if (!Object.hasOwn(notices, name)) continue; // of a newer version
      const known = notices[name as NoticeName].safeParse(payload);
      if (known.success) this.emit({ name: name as NoticeName, payload: known.data });
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.timer);
    if (this.outbox.length > 0) await this.flush();
    this.closed = true;
    await this.listener?.end().catch(() => undefined);
  }
}

function parsed(text: string): unknown {
  try {
    return parseExact(text);
  } catch {
    return undefined; // whoever may use the database may notify
  }
}

/** Payloads that tell everything once, each as long as PostgreSQL takes it. */
function split(from: string, told: Told[]): string[] {
  const head = `{"from":${JSON.stringify(from)},"told":[`;
  const texts: string[] = [];
  let [part, bytes] = ['', 0];
  for (const one of new Set(told.map(({ name, payload }) => JSON.stringify([name, payload])))) {
    const more = Buffer.byteLength(one) + 1;
    if (part !== '' && head.length + bytes + more > maxPayload) {
      texts.push(`${head}${part}]}`);
      [part, bytes] = ['', 0];
    }
    part += part === '' ? one : `,${one}`;
    bytes += more;
  }
  return [...texts, `${head}${part}]}`];
}
