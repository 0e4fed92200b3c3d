import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, storableText, type JsonObject } from '../../kernel/json.js';
import type { Task } from '../../protocol/a2a/model.js';
import { storableJson } from '../../protocol/jsonrpc.js';
import type { ServerTask } from '../../protocol/mcp/server-task.js';
import type { Said } from '../../tasks/executor.port.js';
import type { UpstreamTasks } from '../../upstreams/upstream-tasks.js';
import type { Asker, Callee, Remote, Seen } from './remote.js';
import type { Told, ToolTask, ToolTaskView } from '../tool-task.types.js';

/** Of one run, which remembers each that was answered; a call without a task may ask as often. */
const mostQuestions = 100;

/** A caller who waits for the answer: what the server asks may be asked of it. */
interface Waiting {
  readonly ctx: CallContext;
  /** Aborts when it waits no more. */
  readonly signal: AbortSignal;
}

export interface Manner {
  readonly callee: Callee;
  /** How long one look may take. */
  readonly lookMs: number;
  readonly view: ToolTaskView;
  /** What the server said when it made the task: heard before it is asked again. */
  readonly first?: ServerTask;
  readonly waiting?: Waiting;
}

/** The MCP server behind a tool that answered with a task. */
export class ToolRemote implements Remote {
  readonly pushes = false;
  readonly callee: Callee;
  /** A question that was answered may be there for a while still (ext-tasks, task update requests). */
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

  async look({ ctx, signal }: Asker): Promise<Seen> {
    const { first } = this;
    this.first = undefined;
    const ask = { timeoutMs: this.manner.lookMs, signal };
    const said = first?.status === 'working' ? first : await this.tasks.look(ctx, this.task, ask);
    return { task: inModel(said.taskId, await this.told(said, { ctx, signal })), pauseMs: said.pollIntervalMs };
  }

  stop({ ctx }: Pick<Asker, 'ctx'>): Promise<void> {
    return this.tasks.cancel(ctx, this.task, { timeoutMs: this.manner.lookMs });
  }

  private async told(said: ServerTask, asker: Asker): Promise<Told> {
    const { statusMessage: words } = said;
    // Each is kept in the history of the task.
    const message = words === undefined ? undefined : { parts: [{ text: storableText(words) }] };
    switch (said.status) {
      case 'working':
        return { state: 'TASK_STATE_WORKING', message };
      case 'cancelled':
        return { state: 'TASK_STATE_CANCELED', message };
      case 'failed':
        return { state: 'TASK_STATE_FAILED', message: failureIn(said) };
      case 'completed':
        return this.manner.view.ended(storableJson(said.result!));
      case 'input_required': {
        const open = Object.entries(said.inputRequests ?? {}).filter(([name]) => !this.answered.has(name));
        if (this.answered.size + open.length > mostQuestions) throw this.givenUp(asker, tooMuch());
        const questions = storableJson(Object.fromEntries(open));
        const isNews = open.length > 0 && !(await this.answerNow(questions, asker));
        return isNews ? this.asked(questions, asker) : { state: 'TASK_STATE_WORKING' };
      }
    }
  }

  /** Begins to answer what can be answered without the caller's next message; false when that is not so. No look waits for a person. */
  private async answerNow(questions: JsonObject, { ctx, signal }: Asker): Promise<boolean> {
    const { waiting, lookMs } = this.manner;
    const isWaiting = waiting !== undefined && !waiting.signal.aborted;
    const asked = isWaiting ? waiting : { ctx: { ...ctx, peer: undefined }, signal };
    const begun = await this.tasks.answersNow(asked.ctx, this.task, questions, asked.signal);
    if (!begun) return false;
    const names = Object.keys(questions);
    for (const name of names) this.answered.add(name);
    void begun.answers
      .then((answers) => this.tasks.answer(ctx, this.task, answers, { timeoutMs: lookMs, signal }))
      .catch(() => names.forEach((name) => this.answered.delete(name))); // a later look finds them open
    return true;
  }

  private async asked(questions: JsonObject, asker: Asker): Promise<Told> {
    await this.tasks.decideQuestions(asker.ctx, this.task, questions);
    try {
      return { state: 'TASK_STATE_INPUT_REQUIRED', message: this.manner.view.asks(questions) };
    } catch (error) {
      throw this.givenUp(asker, error);
    }
  }

  /** Nobody is going to answer. */
  private givenUp(asker: Asker, why: unknown): unknown {
    void this.stop(asker).catch(() => undefined);
    return why;
  }
}

function tooMuch(): RialtoError {
  const message = `the MCP server asked more than ${mostQuestions} questions`;
  return new RialtoError('remote_invalid_response', { message });
}

/** The words of a failure, with the error that the server gave for callers who speak its protocol. */
function failureIn({ error, statusMessage }: ServerTask): Said {
  const { code, message, data } = error ?? {};
  const said = typeof message === 'string' && message !== '' ? message : statusMessage;
  const relayed = { code, message: said ?? '', data: isJsonObject(data) ? data : {} } as JsonObject;
  return {
    parts: said === undefined ? [] : [{ text: storableText(said) }],
    ...(Number.isInteger(code) && { metadata: { relayed: storableJson(relayed) } }),
  };
}

function inModel(id: string, { state, message, artifacts = [] }: Told): Task {
  const said = message && { messageId: '', role: 'ROLE_AGENT' as const, ...message };
  return { id, contextId: '', status: { state, ...(said && { message: said }) }, artifacts: [...artifacts] };
}
