import type { JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { askPeer, rootsAnswer, tellPeer } from './client-requests.js';
import type { Root } from '../upstream.types.js';

/** Maximum number of open questions of one server. */
const maxQuestions = 200;

export interface CallersOptions {
  /** The only client that the connection serves. On a shared connection no caller can be asked. */
  readonly owner?: Pick<Peer, 'capabilities' | 'isPassing'>;
  readonly roots: readonly Root[];
  readonly isModern: () => boolean;
  /** Called when the server has more open questions than `maxQuestions`. */
  readonly onFlood: () => void;
}

/**
 * Callers of the running calls of a connection, the latest last; undefined for a caller that can be neither asked nor
 * notified.
 */
export class InFlightCalls {
  private readonly callers: (Peer | undefined)[] = [];
  /** Cancels the pending questions when the last call ends. */
  private questionsAbort?: AbortController;
  private questions = 0;
  /** Wakes the questions that wait for a call. */
  private readonly waiting = new Set<() => void>();

  constructor(private readonly options: CallersOptions) {}

  get count(): number {
    return this.callers.length;
  }

  get isIdle(): boolean {
    return this.count === 0;
  }

  /** Adds a call, which must end with `removeCall`. */
  addCall(caller: Peer | undefined): void {
    this.callers.push(caller);
    for (const wake of this.waiting) wake();
  }

  removeCall(caller: Peer | undefined): void {
    this.callers.splice(this.callers.indexOf(caller), 1);
    if (this.isIdle) this.cancelQuestions();
  }

  /**
   * Answers a request of the server. It is canceled when the last call ends that it may belong to. A `roots/list`
   * request belongs to the client and to no call: a server sends it as soon as the connection opens or the roots
   * changed. It is passed on during the next call and may outlive it. Throws as `askPeer` does.
   */
  async asked(method: string, params: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    const { owner, roots, onFlood } = this.options;
    const known = rootsAnswer(roots, method);
    if (known) return known;
    if (++this.questions > maxQuestions) onFlood();
    try {
      const isConnectionWide = owner && !owner.isPassing && method === 'roots/list';
      if (isConnectionWide) await this.waitForAddressee(signal);
      this.questionsAbort ??= new AbortController();
      const questionSignal = isConnectionWide ? signal : AbortSignal.any([signal, this.questionsAbort.signal]);
      return await askPeer(owner && this.addressee, method, params, questionSignal);
    } finally {
      this.questions--;
    }
  }

  told(method: string, params: JsonObject): void {
    const { addressee } = this;
    if (addressee) tellPeer(addressee, method, params);
  }

  /**
   * The client that a request without a call id means: the owner of the connection, or the only waiting caller of a
   * stateless server.
   */
  private get addressee(): Peer | undefined {
    if (this.options.owner) return this.callers.at(-1);
    return this.options.isModern() && this.callers.length === 1 ? this.callers[0] : undefined;
  }

  /** Waits until a client can be asked, or until the signal aborts. */
  private async waitForAddressee(signal: AbortSignal): Promise<void> {
    while (!this.addressee && !signal.aborted)
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.waiting.delete(wake);
          signal.removeEventListener('abort', wake);
          resolve();
        };
        this.waiting.add(wake);
        signal.addEventListener('abort', wake);
      });
  }

  private cancelQuestions(): void {
    this.questionsAbort?.abort();
    this.questionsAbort = undefined;
  }
}
