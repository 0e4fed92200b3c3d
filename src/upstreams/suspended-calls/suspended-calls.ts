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

/** Notices may be lost. */
const lookMs = 1_000;
/** For how long the outcome of a call is kept that came while its caller was away. */
const keptMs = 300_000;

/** A call as its caller makes it, again with each answer. */
export interface HeldRequest {
  readonly ctx: CallContext;
  readonly peer: Peer;
  readonly method: string;
  readonly params: JsonObject;
}

/** Calls that wait here for the answers of callers of the 2026-07-28 revision, in whichever process these arrive. */
@Injectable()
export class SuspendedCalls implements OnApplicationShutdown {
  private readonly held = new Map<string, SuspendedCall>();
  /** Those that are over, which nobody has read yet. */
  private readonly unread = new UnreadOutcomes();
  /** Letters that are worked on. */
  private readonly served = new Set<string>();
  /** By letter, who waits for what it comes to. */
  private readonly waiting = new Map<string, () => void>();

  constructor(
    private readonly mail: SuspendedAnswerStore,
    private readonly presence: Presence,
    private readonly cursors: Cursors,
    private readonly notices: Notices,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  onApplicationShutdown(): void {
    for (const call of this.held.values()) call.giveUp();
  }

  /** Begins one. Throws what `run` throws. */
  async begin(request: HeldRequest, run: ConstructorParameters<typeof SuspendedCall>[1]): Promise<JsonObject> {
    const call = new SuspendedCall(request.peer, run);
    this.held.set(call.id, call);
    void call.ended.then(this.keeperOf(call.id, ownerOf(request)));
    const round = await this.round(call, request);
    if ('questions' in round) this.listen(call);
    return this.answerOf(request, { id: call.id, holder: this.presence.id }, round);
  }

  /** Goes on with one that its caller answers; undefined for a request that is not about any. Throws what the call throws, `unavailable` when whoever held it is gone. */
  async resume(request: HeldRequest): Promise<JsonObject | undefined> {
    const { requestState, inputResponses } = request.peer.answers ?? {};
    const place = this.placeOf(request, requestState);
    if (!place) return undefined;
    const answers = isJsonObject(inputResponses) ? inputResponses : {};
    const { id, holder } = place;
    const call = this.held.get(id);
    if (call) {
      call.answer(answers);
      return this.answerOf(request, place, await this.round(call, request));
    }
    if (holder === this.presence.id) throw lost();
    return this.answerOf(request, place, await this.elsewhere(request, place, answers));
  }

  /** Somebody's answers are for a call that may be held here. */
  @OnNotice('mcp.held-answered')
  posted({ callId }: Notice<'mcp.held-answered'>): void {
    if (this.held.has(callId)) void this.read(callId);
  }

  @OnNotice('mcp.held-settled')
  settled({ letterId }: Notice<'mcp.held-settled'>): void {
    this.waiting.get(letterId)?.();
  }

  /** Whoever waits for the outcome reads it before a timer is over; of the call it knows the id alone, or results would stay. */
  private keeperOf(id: string, owner: string): () => void {
    const keep = async (): Promise<void> => {
      const weight = await this.held.get(id)?.weight();
      if (weight === undefined || !this.held.has(id)) return;
      for (const each of this.unread.keep(id, owner, weight)) this.forget(each);
      setTimeout(() => this.forget(id), keptMs).unref();
    };
    return () => void setImmediate(() => void keep());
  }

  private forget(id: string): void {
    this.held.delete(id);
    this.unread.forget(id);
  }

  private async round(call: SuspendedCall, { ctx, peer }: HeldRequest): Promise<Round> {
    const round = await call.next(peer, ctx.signal).catch((error: unknown) => {
      this.forget(call.id);
      throw error;
    });
    if ('result' in round) this.forget(call.id);
    return round;
  }

  /** Answers may come to another process, whose notice may be lost. */
  private listen(call: SuspendedCall): void {
    const looking = setInterval(() => void this.read(call.id), lookMs).unref();
    void call.ended.then(() => clearInterval(looking));
  }

  private async read(callId: string): Promise<void> {
    try {
      for (const { id, answers } of await this.mail.open(callId)) {
        if (this.served.has(id)) continue;
        this.served.add(id);
        await this.serve(callId, id, answers).finally(() => this.served.delete(id));
      }
    } catch (err) {
      this.log.warn({ err }, 'the answers to a call that is held could not be read');
    }
  }

  private async serve(callId: string, letterId: string, answers: JsonObject): Promise<void> {
    const call = this.held.get(callId);
    call?.answer(answers);
    const outcome = call ? await call.next(nobody, undefined).then(asJson, errorJson) : errorJson(lost());
    if (!('questions' in outcome)) this.forget(callId);
    await this.mail.settle(letterId, outcome);
    this.notices.tell(undefined, 'mcp.held-settled', { letterId });
  }

  private async elsewhere({ ctx }: HeldRequest, { id, holder }: Place, answers: JsonObject): Promise<Round> {
    const letterId = await this.mail.post(ctx.org.id, id, answers);
    this.notices.tell(undefined, 'mcp.held-answered', { callId: id });
    try {
      for (;;) {
        const { outcome, isGone } = await this.mail.take(letterId, holder);
        if (outcome) return roundOf(outcome);
        if (isGone) throw lost();
        if (ctx.signal?.aborted) throw new RialtoError('canceled');
        await new Promise<void>((done) => {
          this.waiting.set(letterId, done);
          setTimeout(done, lookMs).unref();
        });
      }
    } finally {
      this.waiting.delete(letterId);
      await this.mail.drop(letterId);
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

/** Whoever answers from elsewhere is not told meanwhile. */
const nobody: Peer = {
  key: '',
  era: 'modern',
  wantsAlone: false,
  capabilities: {},
  ask: () => Promise.reject(new RialtoError('unavailable')),
  tell: () => undefined,
};

/** Only the same caller goes on, with the same call. */
function scopeOf({ ctx, method, params }: HeldRequest): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([method, params]))
    .digest('base64url');
  return `mcp-held ${ownerOf({ ctx })} ${hash}`;
}

function ownerOf({ ctx }: Pick<HeldRequest, 'ctx'>): string {
  return `${ctx.org.id} ${ctx.principal.kind} ${ctx.principal.id}`;
}

function lost(): RialtoError {
  return new RialtoError('unavailable', {
    message: 'the call that waited for this answer is gone',
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
