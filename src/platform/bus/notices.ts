import { EventEmitter } from 'node:events';
import pg from 'pg';
import { parseExact } from '../../protocol/exact-integers.js';
import { z } from 'zod';
import { notices, type Notice, type NoticeName } from '../../kernel/notices.js';
import { systemClock } from '../../kernel/clock.js';
import { hasOthers } from '../database/presence.js';
import { requireWritable, watchConnection } from '../database/connection-check.js';
import { positional } from '../database/sql.js';
import type { Tx } from '../database/tx.js';
import { breakConnection } from '../library-internals/pg-connection.js';
import type { Logger } from '../telemetry/logger.js';

const channel = 'rialto_notices';
/** Bytes. PostgreSQL refuses a `pg_notify` payload of 8,000 bytes or more. */
const maxPayload = 7_500;
const coalesceMs = 3;
const reconnectMs = 500;
/** How long a process that found no other one sends no notices. A process that begins to listen ends this at once. */
const aloneMs = 5_000;

const envelope = z.object({ from: z.string(), told: z.array(z.tuple([z.string(), z.unknown()])) });

type Outgoing = { name: NoticeName; payload: Notice<NoticeName> };

/**
 * Publishes facts to waiting code: to listeners of this process at once, to other processes with one coalesced
 * `pg_notify`. A notice is only a hint: a receiver reads the facts from rows, and polls slowly in case a notice is
 * lost (decisions: notices).
 */
export class Notices {
  private readonly emitter = new EventEmitter().setMaxListeners(0);
  private readonly origin = Math.random().toString(36).slice(2);
  private outbox: Outgoing[] = [];
  private timer?: NodeJS.Timeout;
  private listener?: pg.Client;
  private closed = false;
  private mayHaveOthers = true;
  private othersCheckedAt = -Infinity;

  /** @param self the number of this process (Presence); 0 for a process without one. */
  constructor(
    private readonly pool: Pick<pg.Pool, 'query'>,
    private readonly directUrl: string,
    private readonly log: Logger,
    private readonly self = 0,
  ) {}

  on<Name extends NoticeName>(name: Name, listen: (payload: Notice<Name>) => void): () => void {
    this.emitter.on(name, listen);
    return () => void this.emitter.off(name, listen);
  }

  /** Publishes a notice after the commit of `tx`, or at once when there is no transaction. */
  tell<Name extends NoticeName>(tx: Tx | undefined, name: Name, payload: Notice<Name>): void {
    if (tx) tx.afterCommit(() => this.publish(name, payload));
    else this.publish(name, payload);
  }

  private publish(name: NoticeName, payload: Notice<NoticeName>): void {
    this.emit({ name, payload });
    this.outbox.push({ name, payload });
    this.timer ??= setTimeout(() => void this.flush(), coalesceMs).unref();
  }

  private emit({ name, payload }: Outgoing): void {
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
    if (!(await this.hasOthers())) return;
    for (const text of split(this.origin, batch)) {
      try {
        await this.pool.query({
          name: 'notices',
          ...positional('select pg_notify(:channel, :text)', { channel, text }),
        });
      } catch (err) {
        this.log.warn({ err }, 'notices for other processes were lost; those processes find the rows when they poll');
      }
    }
  }

  /**
   * Returns whether another process may listen. Without one, an asynchronous send takes a statement and a commit less.
   */
  private async hasOthers(): Promise<boolean> {
    const now = systemClock.elapsed();
    if (now - this.othersCheckedAt < aloneMs) return this.mayHaveOthers;
    try {
      const select = `select ${hasOthers(':self')} as others`;
      const { rows } = await this.pool.query<{ others: boolean }>({
        name: 'notices-others',
        ...positional(select, { self: this.self }),
      });
      // A process that began to listen meanwhile has told so.
      if (this.othersCheckedAt < now) this.noteOthers(rows[0]!.others, now);
    } catch {
      return true;
    }
    return this.mayHaveOthers;
  }

  private noteOthers(mayHaveOthers: boolean, checkedAt = systemClock.elapsed()): void {
    this.mayHaveOthers = mayHaveOthers;
    this.othersCheckedAt = checkedAt;
  }

  /**
   * Listens for notices of other processes, and reconnects until `close`. Rejects when the first connection fails.
   */
  async listen(): Promise<void> {
    const client = await this.connectListener();
    this.listener = client;
    client.once('end', () => this.reconnect());
  }

  private async connectListener(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.directUrl,
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      application_name: 'rialto:notices',
    });
    client.on('error', () => undefined);
    client.on('notification', ({ payload }) => this.receiveNotice(payload ?? ''));
    try {
      await client.connect();
      watchConnection(client);
      await requireWritable(client);
      await client.query(`listen ${channel}`);
      // Tells the others that this process listens, and asks for them again.
      const text = textOf(this.origin, '');
      await client.query(positional('select pg_notify(:channel, :text)', { channel, text }));
      this.othersCheckedAt = -Infinity;
      return client;
    } catch (error) {
      breakConnection(client);
      throw error;
    }
  }

  private reconnect(): void {
    if (this.closed) return;
    setTimeout(() => {
      if (this.closed) return;
      this.listen().then(
        () => (this.closed ? this.listener?.end() : this.announceGap()),
        () => this.reconnect(),
      );
    }, reconnectMs).unref();
  }

  /** Notices may have been lost while the connection was down, so caches must drop all their entries. */
  private announceGap(): void {
    this.emitter.emit('missed');
  }

  onMissed(listen: () => void): void {
    this.emitter.on('missed', listen);
  }

  private receiveNotice(text: string): void {
    if (text.startsWith(headOf(this.origin))) return;
    const message = envelope.safeParse(parseNotice(text));
    if (!message.success) return;
    this.noteOthers(true);
    for (const [name, payload] of message.data.told) {
      if (!Object.hasOwn(notices, name)) continue; // sent by a newer version
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

function parseNotice(text: string): unknown {
  try {
    return parseExact(text);
  } catch {
    return undefined; // any user of the database can send a notification
  }
}

/** Splits notices into payloads that PostgreSQL accepts. Equal notices are sent once. */
function split(from: string, items: Outgoing[]): string[] {
  const head = headOf(from);
  const texts: string[] = [];
  let [part, bytes] = ['', 0];
  for (const one of new Set(items.map(({ name, payload }) => JSON.stringify([name, payload])))) {
    const more = Buffer.byteLength(one) + 1;
    if (part !== '' && head.length + bytes + more > maxPayload) {
      texts.push(textOf(from, part));
      [part, bytes] = ['', 0];
    }
    part += part === '' ? one : `,${one}`;
    bytes += more;
  }
  return [...texts, textOf(from, part)];
}

function headOf(from: string): string {
  return `{"from":${JSON.stringify(from)},"told":[`;
}

function textOf(from: string, told: string): string {
  return `${headOf(from)}${told}]}`;
}
