import type { JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { askPeer, rootsAnswer, tellPeer } from './client-requests.js';
import type { Root } from '../upstream.types.js';

/** Of a server, open at once. */
const maxQuestions = 200;

export interface CallersOptions {
  /** The one client whose calls the line serves; on a line of all nobody is asked anything. */
  readonly owner?: Pick<Peer, 'capabilities' | 'isPassing'>;
  readonly roots: readonly Root[];
  readonly isModern: () => boolean;
  /** The server asks more at once than anybody could answer. */
  readonly onFlood: () => void;
}

/** Whose calls a line serves just now, the latest last; undefined for a caller that is neither asked nor told. */
export class InFlightCalls {
  private readonly callers: (Peer | undefined)[] = [];
  /** Of the questions that wait, which end with the last call. */
  private work?: AbortController;
  private questions = 0;
  /** Questions that wait for a call. */
  private readonly waiting = new Set<() => void>();

  constructor(private readonly options: CallersOptions) {}

  get count(): number {
    return this.callers.length;
  }

  get isIdle(): boolean {
    return this.count === 0;
  }

  async during<Result>(caller: Peer | undefined, call: () => Promise<Result>): Promise<Result> {
    this.callers.push(caller);
    for (const wake of this.waiting) wake();
    try {
      return await call();
    } finally {
      this.callers.splice(this.callers.indexOf(caller), 1);
      if (this.isIdle) this.rest();
    }
  }

  /**
   * Answers a question of the server; it ends with the last call that it may be for. That for roots is for none: they are those of the line's one
   * client, and a server asks as soon as the line is open, or they changed. It goes by the next call, and need not be answered by its end.
   * Throws as `askPeer` does.
   */
  async asked(method: string, params: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    const { owner, roots, onFlood } = this.options;
    const known = rootsAnswer(roots, method);
    if (known) return known;
    if (++this.questions > maxQuestions) onFlood();
    try {
      const isOfLine = owner && !owner.isPassing && method === 'roots/list';
      if (isOfLine) await this.call(signal);
      this.work ??= new AbortController();
      const until = isOfLine ? signal : AbortSignal.any([signal, this.work.signal]);
      return await askPeer(owner && this.hearer, method, params, until);
    } finally {
      this.questions--;
    }
  }

  told(method: string, params: JsonObject): void {
    const { hearer } = this;
    if (hearer) tellPeer(hearer, method, params);
  }

  /** Whom it means that says something without naming a call: the owner of the line, or who alone waits for a stateless answer. */
  private get hearer(): Peer | undefined {
    if (this.options.owner) return this.callers.at(-1);
    return this.options.isModern() && this.callers.length === 1 ? this.callers[0] : undefined;
  }

  /** Comes when somebody can be asked, or nobody wants that any more. */
  private async call(until: AbortSignal): Promise<void> {
    while (!this.hearer && !until.aborted)
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.waiting.delete(wake);
          until.removeEventListener('abort', wake);
          resolve();
        };
        this.waiting.add(wake);
        until.addEventListener('abort', wake);
      });
  }

  private rest(): void {
    this.work?.abort();
    this.work = undefined;
  }
}
