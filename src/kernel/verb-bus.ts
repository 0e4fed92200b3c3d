import type { CallContext, Principal } from './call-context.js';
import { systemClock, type Clock } from './clock.js';
import { RialtoError, type ErrorCode } from './errors.js';
import { newId, type ActId } from './ids.js';
import type { JsonObject } from './json.js';
import type { Action, ResourceRef } from './verbs.js';

/** The registered agent an act goes to. */
export interface TargetAgent {
  readonly id: string;
  readonly slug: string;
  readonly url: string;
  /** Price of one task in the agent's own unit, when its card states one. */
  readonly costPerTask?: number;
}

/** What is remembered of a call that somebody asked for as a dispatch, beyond that it was made (RE-63). */
export interface DispatchFacts {
  /** `explicit:<work type>` when the caller named the agent, `transparent:<work type>` when the gateway chose it (RE-64). */
  readonly workType: string;
  /** What is sent, as JSON text that may be kept. */
  readonly input: string;
  /** True when a row of the act's id holds a place among the calls of its agent already. */
  readonly isPlaced: boolean;
}

/** One act on someone's behalf: what the decider decides and what is remembered. */
export interface VerbCall {
  /** The id of the act, where its caller has to know it beforehand. */
  readonly id?: ActId;
  /** The canonical name, e.g. `vercel_ops.deploy`; an alias never appears here (RE-09). */
  readonly verb: string;
  readonly action: Action;
  readonly resource: ResourceRef;
  readonly ctx: CallContext;
  /** The other name of the tool (RE-07), whichever was used. */
  readonly legacyAlias?: string;
  /** The name that the caller used: the canonical one, or an alias. Absent for what is not called by the name of a tool. */
  readonly calledAs?: string;
  readonly agent?: TargetAgent;
  readonly skillId?: string;
  /** What policies may know of the task that is the resource. */
  readonly task?: { readonly agent: string; readonly owner: { readonly kind: Principal['kind']; readonly id: string } };
  /** Correlates everything one call causes (RE-20). */
  readonly sessionId?: string;
  /** Top-level arguments: policies may read them, records keep only their size and hash. */
  readonly args?: JsonObject;
  /** How long the work may take, in milliseconds; an act of a killed process counts as active no longer. */
  readonly timeoutMs?: number;
  readonly dispatch?: DispatchFacts;
}

export interface Decision {
  readonly allowed: boolean;
  /** Names of the policies that decided; empty when no permit matched. */
  readonly policies: readonly string[];
  readonly reason: string;
  /** The version of the policy set that was asked. */
  readonly version?: string;
}

export type Outcome = 'completed' | 'failed' | 'denied';

/** An error as events tell it: with the number and name that callers of tools see, where the bus knows them (RE-39). */
export interface VerbError {
  readonly code: number | ErrorCode;
  readonly name?: string;
  /** Our own word for it. */
  readonly reason: ErrorCode;
  readonly message: string;
}

/** What happened in one phase of an act (RE-36…RE-39). */
export interface VerbEvent {
  readonly phase: 'pre-verb' | 'post-verb' | 'verb-error';
  readonly actId: ActId;
  readonly verb: string;
  readonly action: Action;
  /** The alias of a tool, also where it was called by its canonical name; `calledAs` tells which name was used (RE-38). */
  readonly legacyAlias?: string;
  readonly calledAs?: string;
  readonly orgId: string;
  readonly agentCardId?: string;
  readonly agentUrl?: string;
  readonly skillId?: string;
  readonly sessionId: string;
  readonly args: JsonObject;
  /** ISO 8601. */
  readonly emittedAt: string;
  readonly durationMs?: number;
  readonly outcome?: Outcome;
  readonly error?: VerbError;
  /** A `pre-verb` subscriber sets `denied` to the reason to stop the act (RE-35). */
  readonly context: { denied?: string; readonly decision?: Decision };
}

/** An act as it runs: handed to the work, to the decider and to the ledger. */
export interface Act extends VerbCall {
  readonly id: ActId;
  readonly sessionId: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  decision?: Decision;
  /** Set by work whose answer is remembered with it: the task of the remote agent, and as JSON text that may be kept what it said. */
  answer?: { readonly taskId?: string; readonly output?: string };
  /** Set by work that wrote the end of the act into its own transaction. */
  recorded?: boolean;
  /** Set by work that was begun and goes on outside: whoever sees its end counts it. */
  handedOver?: boolean;
}

export interface ActEnd {
  readonly outcome: Outcome;
  readonly durationMs: number;
  readonly error?: RialtoError;
  readonly handedOver?: boolean;
}

export type Decider = (act: Act) => Promise<Decision> | Decision;
export type VerbSubscriber = (event: VerbEvent) => void | Promise<void>;

interface Subscription {
  readonly tell: VerbSubscriber;
  readonly wants: (phase: VerbEvent['phase']) => boolean;
}

/** Where acts are remembered. Both calls resolve when the rows are committed and reject when they are not. */
export interface VerbLedger {
  begin(act: Act): Promise<void>;
  end(act: Act, end: ActEnd): Promise<void>;
}

export interface VerbBusOptions {
  /** Required by the product at boot; without one every act is denied. */
  decider?: Decider;
  ledger?: VerbLedger;
  clock?: Clock;
  /** Makes the error of an event; by default its code is our own word. */
  errorOf?: (error: RialtoError) => VerbError;
  /** Told of a subscriber of `post-verb` or `verb-error` that threw: the act itself is over. */
  onSubscriberError?: (error: unknown, event: VerbEvent) => void;
}

const undecided: Decision = { allowed: false, policies: [], reason: 'the decision could not be made' };

/**
 * Every act runs inside `around`: decided first, told before and after, remembered in the same breath. It fails closed:
 * no decider, a decider or a `pre-verb` subscriber that throws, and the work is never called.
 */
export class VerbBus {
  private readonly subscriptions: Subscription[] = [];
  private readonly clock: Clock;
  private decider?: Decider;
  private ledger?: VerbLedger;

  constructor(private readonly options: VerbBusOptions = {}) {
    this.clock = options.clock ?? systemClock;
    this.decider = options.decider;
    this.ledger = options.ledger;
  }

  /** Sets the one decider; a second one is a mistake of wiring. */
  decideWith(decider: Decider): void {
    if (this.decider) throw new Error('the verb bus has a decider already');
    this.decider = decider;
  }

  recordIn(ledger: VerbLedger): void {
    if (this.ledger) throw new Error('the verb bus has a ledger already');
    this.ledger = ledger;
  }

  get hasDecider(): boolean {
    return this.decider !== undefined;
  }

  /** Adds a subscriber; they are told in order and awaited, of the phases they want. Returns how to leave. */
  subscribe(tell: VerbSubscriber, wants: Subscription['wants'] = () => true): () => void {
    const subscription = { tell, wants };
    this.subscriptions.push(subscription);
    return () => void this.subscriptions.splice(this.subscriptions.indexOf(subscription), 1);
  }

  /** Asks without acting, for lists: no event, no record. False when the decision cannot be made. Throws `unavailable`. */
  async permits(call: VerbCall): Promise<boolean> {
    return (await this.ask(call)).allowed;
  }

  /** The same with its reason. */
  async ask(call: VerbCall): Promise<Decision> {
    try {
      return (await this.decider?.(this.open(call))) ?? undecided;
    } catch (error) {
      if (isUnavailable(error)) throw error;
      return undecided;
    }
  }

  /** Runs `work` if the act is allowed. Throws `denied`, `unavailable` when it cannot be recorded, or what the work threw. */
  async around<Result>(call: VerbCall, work: (act: Act) => Promise<Result>): Promise<Result> {
    const act = this.open(call);
    await this.permit(act);
    const begun = this.begin(act);
    let result: Result;
    try {
      result = await work(act);
    } catch (error) {
      await begun.catch(() => undefined);
      throw await this.fail(act, error);
    }
    await this.complete(act, begun);
    return result;
  }

  /** The same for a stream: the act ends when the last item was taken, the reader left, or the source threw. */
  async *aroundStream<Item>(call: VerbCall, work: (act: Act) => AsyncIterable<Item>): AsyncGenerator<Item, void> {
    const act = this.open(call);
    await this.permit(act);
    const begun = this.begin(act);
    let failure: { error: unknown } | undefined;
    try {
      yield* work(act);
    } catch (error) {
      failure = { error };
    } finally {
      if (failure) {
        await begun.catch(() => undefined);
        failure = { error: await this.fail(act, failure.error) };
      } else await this.complete(act, begun);
    }
    if (failure) throw failure.error;
  }

  private open(call: VerbCall): OpenAct {
    const id = call.id ?? newId<ActId>();
    return {
      startedAt: this.clock.now(),
      ...call,
      id,
      sessionId: call.sessionId ?? id,
      openedAt: this.clock.elapsed(),
    };
  }

  private async permit(act: OpenAct): Promise<void> {
    const denied = await this.findDenial(act);
    if (!denied) return;
    await this.settle(act, isUnavailable(denied) ? 'failed' : 'denied', denied);
    throw denied;
  }

  private async findDenial(act: Act): Promise<RialtoError | undefined> {
    if (!this.decider) return denial(act, 'no decider is installed');
    try {
      act.decision = await this.decider(act);
    } catch (error) {
      return isUnavailable(error) ? error : denial(act, 'the decision could not be made', error);
    }
    const context = { decision: act.decision, denied: act.decision.allowed ? undefined : act.decision.reason };
    const subscribers = this.subscribersOf('pre-verb');
    if (subscribers.length > 0) {
      const event = this.event(act, 'pre-verb', { context });
      for (const { tell } of subscribers) {
        try {
          await tell(event);
        } catch (error) {
          return denial(act, 'a pre-verb subscriber refused', error);
        }
      }
    }
    return context.denied === undefined ? undefined : denial(act, context.denied);
  }

  private begin(act: Act): Promise<void> {
    const begun = this.ledger?.begin(act) ?? Promise.resolve();
    begun.catch(() => undefined); // awaited at the end of the act; until then nobody listens
    return begun;
  }

  private async complete(act: OpenAct, begun: Promise<void>): Promise<void> {
    try {
      await begun;
    } catch (cause) {
      throw unrecorded(cause);
    }
    await this.settle(act, 'completed');
  }

  private async fail(act: OpenAct, thrown: unknown): Promise<RialtoError> {
    const error = RialtoError.from(thrown);
    await this.settle(act, 'failed', error);
    return error;
  }

  private async settle(act: OpenAct, outcome: Outcome, error?: RialtoError): Promise<void> {
    const { handedOver } = act;
    const end: ActEnd = { outcome, durationMs: roundMs(this.clock.elapsed() - act.openedAt), error, handedOver };
    try {
      if (!act.recorded) await this.ledger?.end(act, end);
    } catch (cause) {
      if (end.outcome === 'completed') throw unrecorded(cause);
    }
    const { errorOf = plainError } = this.options;
    const told = { durationMs: end.durationMs, outcome: end.outcome, ...(end.error && { error: errorOf(end.error) }) };
    await this.tell(act, 'post-verb', told);
    if (end.outcome === 'failed') await this.tell(act, 'verb-error', told);
  }

  private async tell(act: Act, phase: VerbEvent['phase'], more: Partial<VerbEvent>): Promise<void> {
    const subscribers = this.subscribersOf(phase);
    if (subscribers.length === 0) return;
    const event = this.event(act, phase, more);
    for (const { tell } of subscribers) {
      try {
        await tell(event);
      } catch (error) {
        this.options.onSubscriberError?.(error, event);
      }
    }
  }

  private subscribersOf(phase: VerbEvent['phase']): Subscription[] {
    return this.subscriptions.filter(({ wants }) => wants(phase));
  }

  private event(act: Act, phase: VerbEvent['phase'], more: Partial<VerbEvent>): VerbEvent {
    return {
      phase,
      actId: act.id,
      verb: act.verb,
      action: act.action,
      legacyAlias: act.legacyAlias,
      calledAs: act.calledAs,
      orgId: act.ctx.org.id,
      agentCardId: act.agent?.id,
      agentUrl: act.agent?.url,
      skillId: act.skillId,
      sessionId: act.sessionId,
      args: act.args ?? {},
      emittedAt: new Date(this.clock.now()).toISOString(),
      context: { decision: act.decision },
      ...more,
    };
  }
}

/** Nothing is let through, and the caller may try again: nobody said no. */
function isUnavailable(error: unknown): error is RialtoError {
  return error instanceof RialtoError && error.code === 'unavailable';
}

/** What is known to be away is told as such, the same at every door (R4). */
function unrecorded(cause: unknown): RialtoError {
  return isUnavailable(cause)
    ? cause
    : new RialtoError('unavailable', { message: 'the act could not be recorded', cause });
}

interface OpenAct extends Act {
  /** Of the monotonic clock. */
  readonly openedAt: number;
}

function roundMs(duration: number): number {
  return Math.max(0.001, Math.round(duration * 1_000) / 1_000);
}

function denial(act: Act, reason: string, cause?: unknown): RialtoError {
  const policies = act.decision?.policies ?? [];
  return new RialtoError('denied', { message: reason, data: { verb: act.verb, policies, decisionId: act.id }, cause });
}

function plainError({ code, message }: RialtoError): VerbError {
  return { code, reason: code, message };
}
