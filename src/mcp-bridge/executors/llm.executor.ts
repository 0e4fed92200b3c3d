import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError, type ErrorCode } from '../../kernel/errors.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import { timeoutSignal } from '../../kernel/abort.js';
import type { RunStep } from '../../protocol/a2a/run/run-event.js';
import type { ChatCall, Completion } from '../../protocol/chat/completion.js';
import { assistantMessage, toolMessage, type ChatMessage } from '../../protocol/chat/messages.js';
import type { LlmConfig } from '../../registry/published.types.js';
import type { TaskExecutor, TaskRun, TaskUpdate } from '../../tasks/executor.port.js';
import {
  asks,
  askUser,
  limitsOf,
  opening,
  questionOf,
  requestOf,
  saidBefore,
  tokensOf,
  type LlmLimits,
  type LlmMemo,
} from './llm-talk.js';
import { LlmTools, type LlmTool } from './llm-tools.js';
import { ModelClient } from './model-client.js';
import { requireCleartext, turnOf, working } from './run-message.js';
import { TextChunks } from './text-chunks.js';
import { callerLost, outcomeUnknown } from './unknown-outcome.js';

/** Tolerance in milliseconds: when two timers are due at the same moment, either may fire first. */
const timerSlackMs = 50;
/** Largest number of calls that a model may make in one step. */
const maxCalls = 16;
/** Largest length of the stored messages, in characters, because a later run reads all of them again. */
const maxStoredChars = 1_000_000;

/** The work of answering one message. */
interface Turn {
  readonly run: TaskRun;
  readonly ctx: CallContext & { readonly signal: AbortSignal };
  readonly config: LlmConfig;
  readonly limits: LlmLimits;
  readonly number: number;
  readonly until: number;
  readonly opening: readonly ChatMessage[];
  readonly tools: ReadonlyMap<string, LlmTool>;
  /** State from before this turn, which a later run needs when this one is lost. */
  readonly memo: LlmMemo;
  readonly messages: ChatMessage[];
}

/**
 * Executor for a published agent that uses a model for its work. The model may use tools of the org with the rights of
 * the caller, in a bounded loop. A turn starts again when its process was lost, unless it called a tool that must not
 * be called twice.
 */
@Injectable()
export class LlmExecutor implements TaskExecutor {
  readonly kind = 'llm';
  readonly pure = false;

  constructor(
    private readonly model: ModelClient,
    private readonly tools: LlmTools,
  ) {}

  async *execute(run: TaskRun): AsyncGenerator<TaskUpdate, void> {
    requireCleartext(run);
    yield stepReport('turn_started');
    const memo = (run.task.memo ?? {}) as LlmMemo;
    const number = turnOf(run);
    if (memo.asked?.turn === number) {
      yield asks(memo.asked.text);
      return;
    }
    if (memo.risked?.turn === number) throw outcomeUnknown(undefined, callerLost);
    const config = run.agent.executor as LlmConfig;
    const limits = limitsOf(config);
    const until = systemClock.elapsed() + limits.maxSeconds * 1_000;
    const timeout = timeoutSignal(limits.maxSeconds * 1_000, [run.signal]);
    try {
      const ctx = { ...run.ctx, signal: timeout.signal };
      const [tools, earlier] = await Promise.all([this.tools.matching(ctx, config.tools), run.earlier()]);
      const messages = saidBefore(memo, run.message);
      yield* this.turn({
        run,
        ctx,
        config,
        limits,
        number,
        until,
        opening: opening(config, earlier),
        tools,
        memo,
        messages,
      });
    } catch (error) {
      const isOver = timeout.signal.aborted || systemClock.elapsed() >= until - timerSlackMs;
      throw isOver && !run.signal.aborted ? reached('maxSeconds', limits, error) : error;
    } finally {
      timeout.end();
    }
  }

  private async *turn(turn: Turn): AsyncGenerator<TaskUpdate, void> {
    const { limits, messages } = turn;
    let tokens = 0;
    for (let step = 1; step <= limits.maxSteps; step++) {
      const completion = yield* this.nextMessage(turn, limits.maxTokens - tokens);
      const { text, calls } = completion;
      tokens += tokensOf(completion);
      if (calls.length === 0) {
        yield { status: { state: 'TASK_STATE_COMPLETED', message: { parts: [{ text }] } } };
        return;
      }
      if (tokens >= limits.maxTokens) throw reached('maxTokens', limits);
      messages.push(assistantMessage(completion));
      const asked = yield* this.act(turn, step, calls);
      if (!asked) continue;
      if (JSON.stringify(messages).length > maxStoredChars)
        throw new RialtoError('too_large', { message: 'the conversation is too long to continue' });
      yield { memo: { said: messages, asked } as unknown as Json };
      yield asks(asked.text);
      return;
    }
    throw reached('maxSteps', limits);
  }

  /**
   * Asks the model for its next message and yields the text as it arrives. Throws when the reply has neither text nor
   * a call.
   */
  private async *nextMessage(turn: Turn, maxTokens: number): AsyncGenerator<TaskUpdate, Completion> {
    const { run, ctx, config, limits, until, tools } = turn;
    const request = requestOf(config, [...turn.opening, ...turn.messages], tools.values(), maxTokens);
    const stream = this.model.complete({ agent: run.agent, request, until, signal: ctx.signal });
    yield stepReport('llm_called');
    const chunks = new TextChunks(systemClock);
    let next = await stream.next();
    for (; next.done !== true; next = await stream.next()) {
      const update = chunks.add(next.value);
      if (update) yield update;
    }
    const completion = next.value;
    const rest = chunks.end(completion.calls.length === 0);
    if (rest) yield rest;
    if (completion.finish === 'length') throw reached('maxTokens', limits);
    if (completion.finish === 'content_filter')
      throw new RialtoError('remote_error', { message: 'the model server withheld the answer (content_filter)' });
    if (completion.calls.length === 0 && completion.text === '')
      throw new RialtoError('remote_invalid_response', { message: 'the model returned an empty answer' });
    return completion;
  }

  /** Makes the calls of one step in their order; returns the question, which is asked after them. */
  private async *act(
    turn: Turn,
    step: number,
    calls: readonly ChatCall[],
  ): AsyncGenerator<TaskUpdate, LlmMemo['asked'] | undefined> {
    const { messages, number } = turn;
    const question = calls.find(({ name }) => name === askUser.name);
    for (const [index, call] of calls.entries()) {
      if (call === question) continue;
      const refusal = modelRefusal(turn, call, index);
      if (refusal !== undefined) {
        messages.push(toolMessage(call.id, refusal));
        continue;
      }
      if (!turn.tools.get(call.name)!.mayRepeat)
        yield { memo: { ...turn.memo, risked: { turn: number, tool: call.name } } as unknown as Json };
      yield { ...working, metadata: { step } };
      const { text, isError } = await this.tools.callTool(turn.ctx, call);
      messages.push(toolMessage(call.id, text));
      yield stepReport(isError ? 'tool_failed' : 'tool_returned', { step });
    }
    return question && { turn: number, callId: question.id, text: questionOf(question) };
  }
}

/** Reports a step of the run to its followers (RY-25), without the name of a tool (RY-09). */
function stepReport(event: RunStep, facts: JsonObject = {}): TaskUpdate {
  return { ...working, metadata: { event, ...facts } };
}

/** Returns the reason to refuse a call, as text for the model; undefined when the call may be made. */
function modelRefusal({ tools }: Turn, { name }: ChatCall, index: number): string | undefined {
  if (index >= maxCalls) return `Error: at most ${maxCalls} calls at once`;
  if (name === askUser.name) return 'Error: ask one question at a time';
  return tools.has(name) ? undefined : 'Error: there is no such tool';
}

const codes: Record<keyof LlmLimits, ErrorCode> = {
  maxSteps: 'unprocessable',
  maxSeconds: 'remote_timeout',
  maxTokens: 'too_large',
};

function reached(limit: keyof LlmLimits, limits: LlmLimits, cause?: unknown): RialtoError {
  const message = `the limit of this agent is reached: ${limit} is ${limits[limit]}`;
  return new RialtoError(codes[limit], { message, data: { limit }, cause });
}
