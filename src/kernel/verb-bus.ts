import type { CallContext, Principal } from './call-context.js';
import { systemClock, type Clock } from './clock.js';
import { RialtoError, type ErrorCode } from './errors.js';
import { newId, type ActId } from './ids.js';
import type { JsonObject } from './json.js';
import type { MessageFacts } from './trust.js';
import type { Action, Approvable, Decision, DispatchFacts, NeededApproval, ResourceRef, TargetAgent } from './verbs.js';

/** One act for a caller: the input of the decision and of the records. */
export interface VerbCall extends Approvable {
  /** The id of the act, when the caller must know it in advance. */
  readonly id?: ActId;
  /** The canonical name, e.g. `vercel_ops.deploy`; an alias never appears here (RE-09). */
  readonly verb: string;
  readonly action: Action;
  readonly resource: ResourceRef;
  readonly ctx: CallContext;
  /** The other name of the tool (RE-07), no matter which name the caller used. */
  readonly legacyAlias?: string;
  /** The name that the caller used: the canonical name or an alias. Absent for acts without a tool name. */
  readonly calledAs?: string;
  readonly agent?: TargetAgent;
  readonly skillId?: string;
  /** Facts for policies about the task that is the resource. */
  readonly task?: { readonly agent: string; readonly owner: { readonly kind: Principal['kind']; readonly id: string } };
  /** Correlates everything one call causes (RE-20). */
  readonly sessionId?: string;
  /** Absent: the act sends no message to a published agent. */
  readonly message?: MessageFacts;
  /** Top-level arguments. Policies can read them; records store only their size and hash. */
  readonly args?: JsonObject;
  /** The act that this one is the work of. Its approval also covers this act when the approver is in all groups. */
  readonly within?: Act;
  /** Returns the approval that the work of this act needs too, so that one question asks for both. */
  readonly workNeeds?: () => Promise<NeededApproval | undefined>;
  /** How long the work may take, in milliseconds. After that, an act of a killed process no longer counts as active. */
  readonly timeoutMs?: number;
  readonly dispatch?: DispatchFacts;
}

export type Outcome = 'completed' | 'failed' | 'denied';

/** An error as events show it: with the code and name that callers of tools see, when the bus knows them (RE-39). */
export interface VerbError {
  readonly code: number | ErrorCode;
  readonly name?: string;
  /** The gateway's own error code. */
  readonly reason: ErrorCode;
  readonly message: string;
}

/** An event in one phase of an act (RE-36…RE-39). */
export interface VerbEvent {
  readonly phase: 'pre-verb' | 'post-verb' | 'verb-error';
  readonly actId: ActId;
  readonly verb: string;
  readonly action: Action;
  /**
   * The alias of a tool, also when the caller used its canonical name; `calledAs` has the name that was used (RE-38).
   */
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

/** A running act: passed to the work, the decider and the ledger. */
export interface Act extends VerbCall {
  readonly id: ActId;
  readonly sessionId: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  decision?: Decision;
  /**
   * Set by work when its answer is recorded too: the id of the remote task, and the remote agent's output as JSON text
   * that may be stored.
   */
  answer?: { readonly taskId?: string; readonly output?: string };
  /** Set by work that recorded the end of the act in its own transaction. */
  recorded?: boolean;
  /** Set by work that continues elsewhere after the act: the code that sees its end counts it. */
  handedOver?: boolean;
}

export interface ActEnd {
  readonly outcome: Outcome;
  readonly durationMs: number;
  readonly error?: RialtoError;
  readonly handedOver?: boolean;
}

export type Decider = (act: Act) => Promise<Decision> | Decision;
/**
 * Uses the approval of an act and returns the decision that permits it, or one that denies it when a person refused the
 * act. Throws `approval_required` while neither exists; the caller gets each RialtoError as it is.
 */
export type Approver = (act: Act, decision: Decision, needs: NeededApproval) => Promise<Decision>;
export type VerbSubscriber = (event: VerbEvent) => void | Promise<void>;

interface Subscription {
  readonly notify: VerbSubscriber;
  readonly wants: (phase: VerbEvent['phase']) => boolean;
}

/** Stores the records of acts. Both methods resolve when the rows are committed and reject when they are not. */
export interface VerbLedger {
  /** Reads what the records of an act need, before its work. Returns undefined when nothing has to be read. */
  prepare?(act: Act, isDenied: boolean): Promise<void> | undefined;
  begin(act: Act): Promise<void>;
  end(act: Act, end: ActEnd): Promise<void>;
}

export interface VerbBusOptions {
  /** Required when the product starts; without a decider every act is denied. */
  decider?: Decider;
  ledger?: VerbLedger;
  clock?: Clock;
  /** Makes the error of an event. By default its code is the gateway's own. */
  errorOf?: (error: RialtoError) => VerbError;
  /** Called when a subscriber of `post-verb` or `verb-error` throws; the act itself is over then. */
  onSubscriberError?: (error: unknown, event: VerbEvent) => void;
}

const undecided: Decision = { allowed: false, policies: [], reason: 'the decision could not be made' };

/**
 * Runs every act inside `around`: asks for a decision first, notifies subscribers before and after, and records the
 * act. It fails closed: without a decider, or when the decider or a `pre-verb` subscriber throws, the work is not
 * called.
 */
export class VerbBus {
  private subscriptions: readonly Subscription[] = [];
  private readonly clock: Clock;
  private decider?: Decider;
  private approver?: Approver;
  private ledger?: VerbLedger;

  constructor(private readonly options: VerbBusOptions = {}) {
    this.clock = options.clock ?? systemClock;
    this.decider = options.decider;
    this.ledger = options.ledger;
  }

  /** Sets the decider. Throws when there is one already, because that is a wiring mistake. */
  decideWith(decider: Decider): void {
    if (this.decider) throw new Error('the verb bus has a decider already');
    this.decider = decider;
  }

  /** Sets the approver. Without one, an act that needs an approval is denied. */
  approveWith(approver: Approver): void {
    if (this.approver) throw new Error('the verb bus has an approver already');
    this.approver = approver;
  }

  recordIn(ledger: VerbLedger): void {
    if (this.ledger) throw new Error('the verb bus has a ledger already');
    this.ledger = ledger;
  }

  get hasDecider(): boolean {
    return this.decider !== undefined;
  }

  /**
   * Adds a subscriber for the phases it wants. Subscribers are called in order and awaited. Returns a function that
   * removes it.
   */
  subscribe(notify: VerbSubscriber, wants: Subscription['wants'] = () => true): () => void {
    const subscription = { notify, wants };
    this.subscriptions = [...this.subscriptions, subscription];
    return () => void (this.subscriptions = this.subscriptions.filter((one) => one !== subscription));
  }

  /**
   * Asks for a decision without acting, for lists and for work that goes on: no event, no record. True also for an act
   * that needs an approval, because `around` asks for it when the act begins. False when no decision can be made.
   * Throws `unavailable`.
   */
  async permits(call: VerbCall): Promise<boolean> {
    const { allowed, needs } = await this.decide(call);
    return allowed || needs !== undefined;
  }

  /** Like `permits`, but returns the whole decision with its reason. */
  async decide(call: VerbCall): Promise<Decision> {
    try {
      return (await this.decider?.(this.openAct(call))) ?? undecided;
    } catch (error) {
      if (isUnavailable(error)) throw error;
      return undecided;
    }
  }

  /**
   * Runs `work` if the act is allowed. Throws `denied`, `approval_required`, `unavailable` when the act cannot be
   * recorded, or the error of `work`.
   */
  async around<Result>(call: VerbCall, work: (act: Act) => Promise<Result>): Promise<Result> {
    const act = this.openAct(call);
    await this.permit(act);
    const begun = this.beginAct(act);
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

  /**
   * Like `around` for a stream: the act ends when the reader has taken the last item, the reader leaves, or the source
   * throws.
   */
  async *aroundStream<Item>(call: VerbCall, work: (act: Act) => AsyncIterable<Item>): AsyncGenerator<Item, void> {
    const act = this.openAct(call);
    await this.permit(act);
    const begun = this.beginAct(act);
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

  private openAct(call: VerbCall): OpenAct {
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
    await this.ledger?.prepare?.(act, denied !== undefined)?.catch((cause: unknown) => {
      throw denied ?? unrecorded(cause);
    });
    if (!denied) return;
    await this.endAct(act, isUnavailable(denied) ? 'failed' : 'denied', denied);
    throw denied;
  }

  private async findDenial(act: Act): Promise<RialtoError | undefined> {
    if (!this.decider) return denial(act, 'no decider is installed');
    try {
      act.decision = await this.decider(act);
    } catch (error) {
      return isUnavailable(error) ? error : denial(act, 'the decision could not be made', error);
    }
    const { needs } = act.decision;
    if (needs && this.approver) {
      try {
        act.decision = await this.approver(act, act.decision, needs);
      } catch (error) {
        return error instanceof RialtoError ? error : denial(act, 'the approval could not be read', error);
      }
    }
    const context = { decision: act.decision, denied: act.decision.allowed ? undefined : act.decision.reason };
    const subscribers = this.subscribersOf('pre-verb');
    if (subscribers.length > 0) {
      const event = this.event(act, 'pre-verb', { context });
      for (const { notify } of subscribers) {
        try {
          await notify(event);
        } catch (error) {
          return denial(act, 'a pre-verb subscriber refused', error);
        }
      }
    }
    return context.denied === undefined ? undefined : denial(act, context.denied);
  }

  private beginAct(act: Act): Promise<void> {
    const begun = this.ledger?.begin(act) ?? Promise.resolve();
    // The end of the act awaits `begun`. Until then a rejection must not count as unhandled.
    begun.catch(() => undefined);
    return begun;
  }

  private async complete(act: OpenAct, begun: Promise<void>): Promise<void> {
    try {
      await begun;
    } catch (cause) {
      throw unrecorded(cause);
    }
    await this.endAct(act, 'completed');
  }

  private async fail(act: OpenAct, thrown: unknown): Promise<RialtoError> {
    const error = RialtoError.from(thrown);
    await this.endAct(act, 'failed', error);
    return error;
  }

  private async endAct(act: OpenAct, outcome: Outcome, error?: RialtoError): Promise<void> {
    const { handedOver } = act;
    const end: ActEnd = { outcome, durationMs: roundMs(this.clock.elapsed() - act.openedAt), error, handedOver };
    try {
      if (!act.recorded) await this.ledger?.end(act, end);
    } catch (cause) {
      if (end.outcome === 'completed') throw unrecorded(cause);
    }
    const { errorOf = ({ code, message }: RialtoError): VerbError => ({ code, reason: code, message }) } = this.options;
    const facts = { durationMs: end.durationMs, outcome: end.outcome, ...(end.error && { error: errorOf(end.error) }) };
    await this.notifySubscribers(act, 'post-verb', facts);
    if (end.outcome === 'failed') await this.notifySubscribers(act, 'verb-error', facts);
  }

  private async notifySubscribers(act: Act, phase: VerbEvent['phase'], more: Partial<VerbEvent>): Promise<void> {
    const subscribers = this.subscribersOf(phase);
    if (subscribers.length === 0) return;
    const event = this.event(act, phase, more);
    for (const { notify } of subscribers) {
      try {
        await notify(event);
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

/** True for `unavailable`: the act does not run, but it was not refused, and the caller may try again. */
function isUnavailable(error: unknown): error is RialtoError {
  return error instanceof RialtoError && error.code === 'unavailable';
}

/** Keeps `unavailable` as it is, so that an outage has the same error at every door; wraps every other error. */
function unrecorded(cause: unknown): RialtoError {
  return isUnavailable(cause)
    ? cause
    : new RialtoError('unavailable', { message: 'the act could not be recorded', cause });
}

interface OpenAct extends Act {
  /** Milliseconds of the monotonic clock. */
  readonly openedAt: number;
}

function roundMs(duration: number): number {
  return Math.max(0.001, Math.round(duration * 1_000) / 1_000);
}

function denial(act: Act, reason: string, cause?: unknown): RialtoError {
  const { policies = [], hint } = act.decision ?? {};
  const data = { verb: act.verb, policies, decisionId: act.id };
  return new RialtoError('denied', { message: reason, hint, data, cause });
}
