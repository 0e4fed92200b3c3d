import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, storableText, type JsonObject } from '../../kernel/json.js';
import type { Task } from '../../protocol/a2a/model.js';
import { storableJson } from '../../protocol/jsonrpc.js';
import type { ServerTask } from '../../protocol/mcp/server-task.js';
import type { Said } from '../../tasks/executor.port.js';
import type { UpstreamTasks } from '../../upstreams/upstream-tasks.js';
import type { Asker, Callee, Remote, Polled } from './remote.js';
import type { Told, ToolTask, ToolTaskView } from '../tool-task.types.js';

/**
 * Limit for one run, because it stores the name of each answered question; a call without a task has the same limit.
 */
const maxQuestions = 100;

/** A caller that waits for the answer and can answer questions of the server. */
interface Waiting {
  readonly ctx: CallContext;
  /** Aborts when the caller no longer waits. */
  readonly signal: AbortSignal;
}

export interface Manner {
  readonly callee: Callee;
  /** Timeout of one poll, in milliseconds. */
  readonly pollTimeoutMs: number;
  readonly view: ToolTaskView;
  /** Answer of the server when it made the task; used instead of the first poll. */
  readonly first?: ServerTask;
  readonly waiting?: Waiting;
}

/** MCP server of a tool call that became a task at the server. */
export class ToolRemote implements Remote {
  readonly pushes = false;
  readonly callee: Callee;
  /**
   * Names of answered questions: a server may list an answered question for some time (ext-tasks, task update
   * requests).
   */
  private readonly answered: Set<string>;
  private first?: ServerTask;

  constructor(
    private readonly tasks: UpstreamTasks,
    private readonly task: ToolTask,
    private readonly manner: Manner,
  ) {
    this.callee = manner.callee;
    this.first = manner.first;
    this.answered = new Set(task.answered);
  }

  async poll({ ctx, signal }: Asker): Promise<Polled> {
    const { first } = this;
    this.first = undefined;
    const ask = { timeoutMs: this.manner.pollTimeoutMs, signal };
    const polled = first?.status === 'working' ? first : await this.tasks.look(ctx, this.task, ask);
    return {
      task: inModel(polled.taskId, await this.stateOf(polled, { ctx, signal })),
      pauseMs: polled.pollIntervalMs,
    };
  }

  cancelTask({ ctx }: Pick<Asker, 'ctx'>): Promise<void> {
    return this.tasks.cancel(ctx, this.task, { timeoutMs: this.manner.pollTimeoutMs });
  }

  private async stateOf(polled: ServerTask, asker: Asker): Promise<Told> {
    const { statusMessage: text } = polled;
    // The task history stores each of these messages.
    const message = text === undefined ? undefined : { parts: [{ text: storableText(text) }] };
    switch (polled.status) {
      case 'working':
        return { state: 'TASK_STATE_WORKING', message };
      case 'cancelled':
        return { state: 'TASK_STATE_CANCELED', message };
      case 'failed':
        return { state: 'TASK_STATE_FAILED', message: failureIn(polled) };
      case 'completed':
        return this.manner.view.ended(storableJson(polled.result!));
      case 'input_required': {
        const open = Object.entries(polled.inputRequests ?? {}).filter(([name]) => !this.answered.has(name));
        if (this.answered.size + open.length > maxQuestions) throw this.cancelFor(asker, tooManyQuestions());
        const questions = storableJson(Object.fromEntries(open));
        const isOpen = open.length > 0 && !(await this.answerNow(questions, asker));
        return isOpen ? this.askCaller(questions, asker) : { state: 'TASK_STATE_WORKING' };
      }
    }
  }

  /**
   * Begins to answer the questions that need no new message of the caller. Returns false when there are none. A poll
   * never waits for a person.
   */
  private async answerNow(questions: JsonObject, { ctx, signal }: Asker): Promise<boolean> {
    const { waiting, pollTimeoutMs } = this.manner;
    const isWaiting = waiting !== undefined && !waiting.signal.aborted;
    const answerer = isWaiting ? waiting : { ctx: { ...ctx, peer: undefined }, signal };
    const begun = await this.tasks.answersNow(answerer.ctx, this.task, questions, answerer.signal);
    if (!begun) return false;
    const names = Object.keys(questions);
    for (const name of names) this.answered.add(name);
    void begun.answers
      .then((answers) => this.tasks.answer(ctx, this.task, answers, { timeoutMs: pollTimeoutMs, signal }))
      .catch(() => names.forEach((name) => this.answered.delete(name))); // a later poll finds them open
    return true;
  }

  private async askCaller(questions: JsonObject, asker: Asker): Promise<Told> {
    await this.tasks.decideQuestions(asker.ctx, this.task, questions);
    try {
      return { state: 'TASK_STATE_INPUT_REQUIRED', message: this.manner.view.asks(questions) };
    } catch (error) {
      throw this.cancelFor(asker, error);
    }
  }

  /** Cancels the remote task because no answer will come; returns the error. */
  private cancelFor(asker: Asker, why: unknown): unknown {
    void this.cancelTask(asker).catch(() => undefined);
    return why;
  }
}

function tooManyQuestions(): RialtoError {
  const message = `the MCP server asked more than ${maxQuestions} questions in one task`;
  return new RialtoError('remote_invalid_response', { message });
}

/** Message of a failure, with the error of the server as metadata for callers that speak MCP. */
function failureIn({ error, statusMessage }: ServerTask): Said {
  const { code, message, data } = error ?? {};
  const text = typeof message === 'string' && message !== '' ? message : statusMessage;
  const relayed = { code, message: text ?? '', data: isJsonObject(data) ? data : {} } as JsonObject;
  return {
    parts: text === undefined ? [] : [{ text: storableText(text) }],
    ...(Number.isInteger(code) && { metadata: { relayed: storableJson(relayed) } }),
  };
}

function inModel(id: string, { state, message, artifacts = [] }: Told): Task {
  const reply = message && { messageId: '', role: 'ROLE_AGENT' as const, ...message };
  return { id, contextId: '', status: { state, ...(reply && { message: reply }) }, artifacts: [...artifacts] };
}
