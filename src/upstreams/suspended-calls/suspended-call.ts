import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';

/** A server that asks several things asks them one after the other. */
const settleMs = 20;
/** What a server tells while its caller is away between two rounds; the oldest makes room. */
const maxUntold = 100;

interface Open {
  readonly question: JsonObject;
  readonly answer: (result: JsonObject) => void;
}

/** What a round of a call came to: its result, or the questions that come first, by their names. */
export type Round = { readonly result: JsonObject } | { readonly questions: Readonly<Record<string, JsonObject>> };

/**
 * One call at a server of the 2025 era on behalf of a client of the 2026-07-28 revision: it waits for the answers to what its server asks
 * while its caller, who is asked by a result, calls again.
 */
export class SuspendedCall {
  readonly id = newId();
  private readonly open = new Map<string, Open>();
  private readonly over = new AbortController();
  private readonly outcome: Promise<JsonObject>;
  private asked: () => void = () => undefined;
  private caller?: Peer;
  private untold: (readonly [method: string, params: JsonObject])[] = [];
  private names = 0;

  /** @param run makes the call for the peer that it is given, until the signal. */
  constructor(caller: Peer, run: (peer: Peer, signal: AbortSignal) => Promise<JsonObject>) {
    const peer: Peer = {
      ...caller,
      era: 'legacy',
      wantsAlone: true,
      isPassing: true,
      answers: undefined,
      ask: (method, params, signal) => this.ask({ method, params }, signal),
      tell: (method, params) => this.tell(method, params),
    };
    this.caller = caller;
    this.outcome = run(peer, this.over.signal);
    this.outcome.catch(() => undefined);
  }

  /** Resolves when the call is over, however it ended. */
  get ended(): Promise<void> {
    return this.outcome.then(
      () => undefined,
      () => undefined,
    );
  }

  /** Of its result, in characters, once it is over. */
  weight(): Promise<number> {
    return this.outcome.then(
      (result) => JSON.stringify(result).length,
      () => 0,
    );
  }

  /** What the call comes to next. Throws what it throws; a caller who leaves meanwhile ends it. */
  async next(caller: Peer, signal: AbortSignal | undefined): Promise<Round> {
    this.caller = caller;
    for (const [method, params] of this.untold.splice(0)) this.tell(method, params);
    const leave = (): void => this.over.abort();
    if (signal?.aborted) leave();
    signal?.addEventListener('abort', leave, { once: true });
    try {
      const asked = this.open.size > 0 ? Promise.resolve() : new Promise<void>((done) => (this.asked = done));
      const result = await Promise.race([this.outcome, asked.then(() => undefined)]);
      if (result) return { result };
      await Promise.race([this.ended, new Promise((done) => setTimeout(done, settleMs))]);
      if (this.open.size === 0) return { result: await this.outcome };
      return { questions: Object.fromEntries([...this.open].map(([name, { question }]) => [name, question])) };
    } finally {
      signal?.removeEventListener('abort', leave);
      this.caller = undefined;
    }
  }

  /** The answers of its caller, by the names of the questions; what was not asked is read past. */
  answer(responses: JsonObject): void {
    for (const [name, response] of Object.entries(responses)) {
      const open = this.open.get(name);
      if (!open || !isJsonObject(response)) continue;
      this.open.delete(name);
      open.answer(response);
    }
  }

  /** Nobody waits for it any more. */
  giveUp(): void {
    this.over.abort();
  }

  private ask(question: JsonObject, signal: AbortSignal | undefined): Promise<JsonObject> {
    const name = `question-${++this.names}`;
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.open.delete(name);
        reject(new RialtoError('canceled', { message: 'the call ended before its answer' }));
      };
      if (signal?.aborted) return giveUp();
      signal?.addEventListener('abort', giveUp, { once: true });
      this.open.set(name, {
        question,
        answer: (result) => {
          signal?.removeEventListener('abort', giveUp);
          resolve(result);
        },
      });
      this.asked();
    });
  }

  /** Each request of the caller may have a token of its own for progress; what is told between two requests waits for the next. */
  private tell(method: string, params: JsonObject): void {
    const { caller } = this;
    if (!caller) {
      this.untold.push([method, params]);
      if (this.untold.length > maxUntold) this.untold.shift();
      return;
    }
    if (method !== 'notifications/progress') return caller.tell(method, params);
    const { progressToken } = caller;
    if (progressToken !== undefined) caller.tell(method, { ...params, progressToken });
  }
}
