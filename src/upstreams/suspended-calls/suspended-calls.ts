import { createHash } from 'node:crypto';
import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError, type ErrorCode } from '../../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import type { Notice } from '../../kernel/notices.js';
import type { Peer } from '../../kernel/peer.js';
import { Notices } from '../../platform/bus/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { Presence } from '../../platform/database/presence.js';
import { Cursors } from '../../platform/http/cursor.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { SuspendedAnswerStore } from './suspended-answer.store.js';
import { SuspendedCall, type Round } from './suspended-call.js';
import { UnreadOutcomes } from './unread-outcomes.js';

/** Poll interval in milliseconds; notices may be lost. */
const pollMs = 1_000;
/** How long an unread outcome is stored, in milliseconds. */
const unreadMs = 300_000;

/** Request of the caller; the same request is sent again with each answer. */
export interface HeldRequest {
  readonly ctx: CallContext;
  readonly peer: Peer;
  readonly method: string;
  readonly params: JsonObject;
}

/** Holds calls that wait for answers of callers of the 2026-07-28 revision. The answers may arrive in any process. */
@Injectable()
export class SuspendedCalls implements OnApplicationShutdown {
  private readonly calls = new Map<string, SuspendedCall>();
  /** Ended calls with an outcome that was not read yet. */
  private readonly unread = new UnreadOutcomes();
  /** Ids of answer rows that are being processed. */
  private readonly processing = new Set<string>();
  /** Functions that wake the request that waits for an outcome, by the id of the answer row. */
  private readonly waiting = new Map<string, () => void>();

  constructor(
    private readonly answers: SuspendedAnswerStore,
    private readonly presence: Presence,
    private readonly cursors: Cursors,
    private readonly notices: Notices,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  onApplicationShutdown(): void {
    for (const call of this.calls.values()) call.cancelCall();
  }

  /** Starts a call and runs its first round. Throws what `run` throws. */
  async beginCall(request: HeldRequest, run: ConstructorParameters<typeof SuspendedCall>[1]): Promise<JsonObject> {
    const call = new SuspendedCall(request.peer, run);
    this.calls.set(call.id, call);
    void call.ended.then(this.storeOutcomeOf(call.id, ownerOf(request)));
    const round = await this.round(call, request);
    if ('questions' in round) this.pollAnswers(call);
    return this.answerOf(request, { id: call.id, holder: this.presence.id }, round);
  }

  /**
   * Continues a call with the answers of its caller; returns undefined for a request without answers to a call. Throws
   * what the call throws, and `unavailable` when the process that held it is gone.
   */
  async resumeCall(request: HeldRequest): Promise<JsonObject | undefined> {
    const { requestState, inputResponses } = request.peer.answers ?? {};
    const place = this.placeOf(request, requestState);
    if (!place) return undefined;
    const answers = isJsonObject(inputResponses) ? inputResponses : {};
    const { id, holder } = place;
    const call = this.calls.get(id);
    if (call) {
      call.answer(answers);
      return this.answerOf(request, place, await this.round(call, request));
    }
    if (holder === this.presence.id) throw callGone();
    return this.answerOf(request, place, await this.answerElsewhere(request, place, answers));
  }

  /** Processes answers to a call that this process may hold. */
  @OnNotice('mcp.held-answered')
  posted({ callId }: Notice<'mcp.held-answered'>): void {
    if (this.calls.has(callId)) void this.readAnswers(callId);
  }

  @OnNotice('mcp.held-settled')
  settled({ letterId }: Notice<'mcp.held-settled'>): void {
    this.waiting.get(letterId)?.();
  }

  /**
   * Stores the outcome of an ended call. Waits one turn first, because a waiting caller reads it at once. Refers to the
   * call only by its id, so that the timers do not keep results in memory.
   */
  private storeOutcomeOf(id: string, owner: string): () => void {
    const keep = async (): Promise<void> => {
      const weight = await this.calls.get(id)?.weight();
      if (weight === undefined || !this.calls.has(id)) return;
      for (const each of this.unread.addOutcome(id, owner, weight)) this.forgetCall(each);
      setTimeout(() => this.forgetCall(id), unreadMs).unref();
    };
    return () => void setImmediate(() => void keep());
  }

  private forgetCall(id: string): void {
    this.calls.delete(id);
    this.unread.forget(id);
  }

  private async round(call: SuspendedCall, { ctx, peer }: HeldRequest): Promise<Round> {
    const round = await call.next(peer, ctx.signal).catch((error: unknown) => {
      this.forgetCall(call.id);
      throw error;
    });
    if ('result' in round) this.forgetCall(call.id);
    return round;
  }

  /** Polls for answers that arrived in another process, for the case that a notice was lost. */
  private pollAnswers(call: SuspendedCall): void {
    const timer = setInterval(() => void this.readAnswers(call.id), pollMs).unref();
    void call.ended.then(() => clearInterval(timer));
  }

  private async readAnswers(callId: string): Promise<void> {
    try {
      for (const { id, answers } of await this.answers.findOpen(callId)) {
        if (this.processing.has(id)) continue;
        this.processing.add(id);
        await this.process(callId, id, answers).finally(() => this.processing.delete(id));
      }
    } catch (err) {
      this.log.warn({ err }, 'could not read the answers to a suspended call; tries again later');
    }
  }

  private async process(callId: string, letterId: string, answers: JsonObject): Promise<void> {
    const call = this.calls.get(callId);
    call?.answer(answers);
    const outcome = call ? await call.next(absentPeer, undefined).then(asJson, errorJson) : errorJson(callGone());
    if (!('questions' in outcome)) this.forgetCall(callId);
    await this.answers.storeOutcome(letterId, outcome);
    this.notices.tell(undefined, 'mcp.held-settled', { letterId });
  }

  private async answerElsewhere({ ctx }: HeldRequest, { id, holder }: Place, answers: JsonObject): Promise<Round> {
    const letterId = await this.answers.insertAnswers(ctx.org.id, id, answers);
    this.notices.tell(undefined, 'mcp.held-answered', { callId: id });
    try {
      for (;;) {
        const { outcome, isGone } = await this.answers.takeOutcome(letterId, holder);
        if (outcome) return roundOf(outcome);
        if (isGone) throw callGone();
        if (ctx.signal?.aborted) throw new RialtoError('canceled');
        await new Promise<void>((done) => {
          this.waiting.set(letterId, done);
          setTimeout(done, pollMs).unref();
        });
      }
    } finally {
      this.waiting.delete(letterId);
      await this.answers.drop(letterId);
    }
  }

  private answerOf(request: HeldRequest, { id, holder }: Place, round: Round): JsonObject {
    if ('result' in round) return round.result;
    const requestState = this.cursors.encode(scopeOf(request), [id, String(holder)]);
    return { resultType: 'input_required', inputRequests: round.questions, requestState };
  }

  private placeOf(request: HeldRequest, state: unknown): Place | undefined {
    if (typeof state !== 'string') return undefined;
    try {
      const [id, holder] = this.cursors.decode(scopeOf(request), state, 2);
      return { id: id!, holder: Number(holder) };
    } catch {
      return undefined;
    }
  }
}

interface Place {
  readonly id: string;
  readonly holder: number;
}

/** Peer of a round without a connected client: the caller waits in another process and cannot be notified. */
const absentPeer: Peer = {
  key: '',
  era: 'modern',
  wantsAlone: false,
  capabilities: {},
  ask: () => Promise.reject(new RialtoError('unavailable')),
  tell: () => undefined,
};

/** Binds a request state to its caller and to the same call. */
function scopeOf({ ctx, method, params }: HeldRequest): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([method, params]))
    .digest('base64url');
  return `mcp-held ${ownerOf({ ctx })} ${hash}`;
}

function ownerOf({ ctx }: Pick<HeldRequest, 'ctx'>): string {
  return `${ctx.org.id} ${ctx.principal.kind} ${ctx.principal.id}`;
}

function callGone(): RialtoError {
  return new RialtoError('unavailable', {
    message: 'the call that waited for this answer no longer exists',
    hint: 'call again without requestState',
  });
}

function asJson(round: Round): JsonObject {
  return { ...round };
}

function errorJson(thrown: unknown): JsonObject {
  const { code, message, data } = RialtoError.from(thrown);
  return { error: { code, message, ...(data && { data: data as JsonObject }) } };
}

function roundOf({ error, ...round }: JsonObject): Round {
  if (!isJsonObject(error)) return round as Round;
  const { code, message, data } = error as { code: ErrorCode; message: string; data?: JsonObject };
  throw new RialtoError(code, { message, data });
}
