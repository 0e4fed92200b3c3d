import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { weigh } from '../../platform/turns.js';

/** Time to collect further questions, in milliseconds: a server sends several questions one after the other. */
const settleMs = 20;
/**
 * Maximum number of notifications that are stored while the caller is away between two rounds; the oldest are dropped.
 */
const maxPending = 100;

interface OpenQuestion {
  readonly question: JsonObject;
  readonly answer: (result: JsonObject) => void;
}

/** Outcome of one round of a call: its result, or the questions to answer first, by their names. */
export type Round = { readonly result: JsonObject } | { readonly questions: Readonly<Record<string, JsonObject>> };

/**
 * Call to a server of the 2025 era for a client of the 2026-07-28 revision. The call stays open while the client gets
 * the questions of the server as a result, and sends the answers with its next request.
 */
export class SuspendedCall {
  readonly id = newId();
  private readonly open = new Map<string, OpenQuestion>();
  private readonly abort = new AbortController();
  private readonly outcome: Promise<JsonObject>;
  private asked: () => void = () => undefined;
  private caller?: Peer;
  private pending: (readonly [method: string, params: JsonObject])[] = [];
  private nameCount = 0;

  /** @param run makes the call for the given peer until the signal aborts. */
  constructor(caller: Peer, run: (peer: Peer, signal: AbortSignal) => Promise<JsonObject>) {
    const peer: Peer = {
      ...caller,
      era: 'legacy',
      wantsAlone: true,
      isPassing: true,
      answers: undefined,
      ask: (method, params, signal) => this.holdQuestion({ method, params }, signal),
      tell: (method, params) => this.tell(method, params),
    };
    this.caller = caller;
    this.outcome = run(peer, this.abort.signal);
    this.outcome.catch(() => undefined);
  }

  /** Resolves when the call has ended, with or without an error. */
  get ended(): Promise<void> {
    return this.outcome.then(
      () => undefined,
      () => undefined,
    );
  }

  /** Resolves with about the length of the result in characters, when the call has ended; 0 after an error. */
  weight(): Promise<number> {
    return this.outcome.then(
      (result) => weigh(result),
      () => 0,
    );
  }

  /** Waits for the next outcome. Throws the error of the call. Cancels the call when the caller's signal aborts. */
  async next(caller: Peer, signal: AbortSignal | undefined): Promise<Round> {
    this.caller = caller;
    for (const [method, params] of this.pending.splice(0)) this.tell(method, params);
    const cancel = (): void => this.abort.abort();
    if (signal?.aborted) cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      const asked = this.open.size > 0 ? Promise.resolve() : new Promise<void>((done) => (this.asked = done));
      const result = await Promise.race([this.outcome, asked.then(() => undefined)]);
      if (result) return { result };
      await Promise.race([this.ended, new Promise((done) => setTimeout(done, settleMs))]);
      if (this.open.size === 0) return { result: await this.outcome };
      return { questions: Object.fromEntries([...this.open].map(([name, { question }]) => [name, question])) };
    } finally {
      signal?.removeEventListener('abort', cancel);
      this.caller = undefined;
    }
  }

  /** Passes on the answers of the caller, by the names of the questions. Ignores answers to unknown questions. */
  answer(responses: JsonObject): void {
    for (const [name, response] of Object.entries(responses)) {
      const open = this.open.get(name);
      if (!open || !isJsonObject(response)) continue;
      this.open.delete(name);
      open.answer(response);
    }
  }

  /** Cancels the call. */
  cancelCall(): void {
    this.abort.abort();
  }

  private holdQuestion(question: JsonObject, signal: AbortSignal | undefined): Promise<JsonObject> {
    const name = `question-${++this.nameCount}`;
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

  /**
   * Each request of the caller may have its own progress token. A notification between two requests waits for the next
   * request.
   */
  private tell(method: string, params: JsonObject): void {
    const { caller } = this;
    if (!caller) {
      this.pending.push([method, params]);
      if (this.pending.length > maxPending) this.pending.shift();
      return;
    }
    if (method !== 'notifications/progress') return caller.tell(method, params);
    const { progressToken } = caller;
    if (progressToken !== undefined) caller.tell(method, { ...params, progressToken });
  }
}
