import { Injectable } from '@nestjs/common';
import { unchanged, type Told, type ToolTask, type ToolTaskView } from '../../continuations/tool-task.types.js';
import { toolTaskOf, ToolTasks, type BegunCall } from '../../continuations/tool-tasks.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { containsUnstorable } from '../../protocol/json-text.js';
import type { ServerTask } from '../../protocol/mcp/server-task.js';
import { upstreamName } from '../../protocol/mcp/tool-names.js';
import type { ExecutorConfig } from '../../registry/published.types.js';
import type { TaskExecutor, TaskRun, TaskUpdate } from '../../tasks/executor.port.js';
import type { RegisteredServer, UpstreamTool } from '../../upstreams/registered-server.types.js';
import { identityOf, UpstreamCalls } from '../../upstreams/upstream-calls.js';
import type { TaskTaker } from '../../upstreams/upstream-tasks.types.js';
import { UpstreamsService } from '../../upstreams/upstreams.service.js';
import { argumentsIn } from './message-arguments.js';
import { progressOf } from './progress-update.js';
import { partsOf, textOfResult } from './result-parts.js';
import { requireCleartext, skillOf, turnOf, working } from './run-message.js';
import { answersIn, answersTo, asking, askingAll, questionIn, type AskedByTool } from './tool-question.js';
import { asFailure, callerLost, isUnanswered, mayRepeat, outcomeUnknown } from './unknown-outcome.js';
import { whileWorking } from './while-working.js';

type McpToolConfig = Extract<ExecutorConfig, { kind: 'mcp-tool' }>;

/** State stored for a later run. */
interface Memo {
  /** The turn in which the tool was called; while the turn has no end, the outcome of the call is unknown. */
  readonly called?: number;
  /** The question of the tool; the next message answers it. */
  readonly asked?: AskedByTool;
}

interface ToolCall {
  readonly tool: string;
  readonly target: UpstreamTool | undefined;
  readonly args: JsonObject;
  readonly answers?: JsonObject;
  /** The question that `answers` answer. */
  readonly asked?: AskedByTool;
}

/** The sender of a message can be asked to fill in a form. */
const askable: JsonObject = { elicitation: { form: {} } };
/** Largest number of times that a server may defer a call without a question. */
const maxRounds = 10;
const maxWords = 10_000;

/**
 * Executor for a published agent that uses a tool of an MCP server for its work. A message is a call of the tool, with
 * a policy decision as for a call of its sender. The call is stored before it is made: when its process was lost, it is
 * made again only if the server declares that a repetition is harmless.
 */
@Injectable()
export class McpToolExecutor implements TaskExecutor {
  readonly kind = 'mcp-tool';
  readonly pure = false;

  constructor(
    private readonly upstreams: UpstreamsService,
    private readonly calls: UpstreamCalls,
    private readonly tasks: ToolTasks,
  ) {}

  async *execute(run: TaskRun): AsyncGenerator<TaskUpdate, void> {
    requireCleartext(run);
    if (run.task.state === 'TASK_STATE_SUBMITTED') yield working;
    const turn = turnOf(run);
    const { asked, called } = (run.task.memo ?? {}) as Memo;
    const remote = toolTaskOf(run.task);
    if (remote) return yield* this.followTask(run, remote, called === turn);
    const { answers, wrong } = asked && asked.turn < turn ? answersIn(run.message, asked) : {};
    if (asked && !answers) {
      yield asking(asked, wrong);
      return;
    }
    const call = await this.callOf(run, asked, answers);
    if (called === turn && !(call.target && mayRepeat(call.target.tool))) throw outcomeUnknown(call.tool, callerLost);
    yield { memo: { ...(asked && { asked }), called: turn } as unknown as Json };
    const result = yield* this.result(run, call);
    if ('asked' in result) {
      yield { memo: { asked: result.asked } as unknown as Json };
      yield asking(result.asked);
    } else if ('first' in result) {
      yield* this.tasks.begin(run, result, publishedView(call.tool), { called: turn });
    } else yield* ending(call.tool, result.result);
  }

  /** True when the server has a task for the call: any worker can poll it. */
  leavesWork(run: Pick<TaskRun, 'task' | 'message'>): boolean {
    return toolTaskOf(run.task) !== undefined && (run.task.memo as Memo).called === turnOf(run);
  }

  async addresses({ ctx, agent }: Pick<TaskRun, 'ctx' | 'agent'>): Promise<JsonObject | undefined> {
    const { serverId } = agent.executor as McpToolConfig;
    const { servers } = await this.upstreams.snapshotFor(ctx);
    return identityOf(servers.find(({ row }) => row.serverId === serverId));
  }

  async abandon(run: Pick<TaskRun, 'ctx' | 'task'>): Promise<void> {
    const remote = toolTaskOf(run.task);
    if (remote) await this.tasks.abandon(run, remote);
  }

  /** Follows the task of a server; a message that answers its questions is sent to the server first. */
  private async *followTask(run: TaskRun, remote: ToolTask, isAnswerSent: boolean): AsyncGenerator<TaskUpdate, void> {
    const view = run.agent.id === remote.server ? unchanged : publishedView(remote.tool);
    const { answers, again } = isAnswerSent ? {} : answersTo(run);
    if (again) yield again;
    else yield* this.tasks.goOn(run, remote, view, { called: turnOf(run) }, answers);
  }

  private async callOf(run: TaskRun, asked?: AskedByTool, answers?: JsonObject): Promise<ToolCall> {
    const { serverId } = run.agent.executor as McpToolConfig;
    const { servers } = await this.upstreams.snapshotFor(run.ctx);
    const server = servers.find(({ row }) => row.serverId === serverId);
    if (!server)
      throw new RialtoError('not_found', { message: 'the MCP server behind this agent is no longer registered' });
    const tool = asked?.tool ?? toolOf(run, server);
    const target = server.tools.find((one) => one.tool.name === tool);
    if (asked) return { tool, target, args: asked.args, answers, asked };
    const found = argumentsIn(run.message, (target?.tool.inputSchema ?? {}) as JsonObject);
    if (!found.ok) throw new RialtoError('invalid_params', { message: found.reason });
    return { tool, target, args: found.args };
  }

  /** Returns the final answer of the tool, or its question to the caller. */
  private async *result(
    run: TaskRun,
    call: ToolCall,
  ): AsyncGenerator<TaskUpdate, { result: JsonObject } | { asked: AskedByTool } | BegunCall> {
    let { answers } = call;
    let first: ServerTask | undefined;
    const take: TaskTaker['take'] = (task) => Promise.resolve({ first: (first = task) as unknown as JsonObject });
    const tasks = { admit: () => undefined, take };
    for (let round = 0; round < maxRounds; round++) {
      const result = yield* whileWorking((tell) => this.callTool(run, { ...call, answers, tasks }, tell));
      if (first)
        return { ...call, target: call.target!, canonical: call.target!.canonical, first, capabilities: askable };
      if (result.resultType !== 'input_required') return { result };
      const asked = questionIn(result, { ...call, turn: turnOf(run) });
      if (asked) return { asked };
      answers = { inputResponses: {}, ...('requestState' in result && { requestState: result.requestState! }) };
    }
    throw new RialtoError('remote_timeout', {
      message: `the MCP server deferred the call more than ${maxRounds} times without a question`,
    });
  }

  private async callTool(
    run: TaskRun,
    { tool, target, args, answers, asked, tasks }: ToolCall & { readonly tasks: TaskTaker },
    tell: (update: TaskUpdate) => void,
  ): Promise<JsonObject> {
    const { serverId } = run.agent.executor as McpToolConfig;
    const ctx = { ...run.ctx, signal: run.signal, peer: peerOf(run, { answers, asked }, tell) };
    try {
      const attemptKey = `${run.task.id}-${turnOf(run)}`;
      const canonical = upstreamName(serverId, tool);
      return await this.calls.callTool(ctx, { target, canonical, serverId, args, tasks, attemptKey });
    } catch (thrown) {
      const error = asFailure(thrown);
      if (target && isUnanswered(error) && !mayRepeat(target.tool) && !run.signal.aborted)
        throw outcomeUnknown(tool, error.message, error);
      if (target || error.code !== 'not_found') throw error;
      throw new RialtoError('not_found', { message: `the MCP server behind this agent has no tool "${tool}"` });
    }
  }
}

/**
 * Returns the configured tool, else the skill of the message; an agent with one skill needs no name in the message.
 */
function toolOf(run: TaskRun, { tools }: Pick<RegisteredServer, 'tools'>): string {
  const { executor, skills } = run.agent;
  const { tool } = executor as McpToolConfig;
  if (tool !== undefined) return tool;
  const wanted = skillOf(run) ?? (skills.length === 1 ? skills[0]!.id : undefined);
  if (wanted !== undefined && skills.some(({ id }) => id === wanted)) return wanted;
  // A tool in quarantine is not a skill; the call itself reports the quarantine to callers with permission.
  const quarantined = tools.find(({ tool: { name }, quarantine }) => quarantine && name === wanted);
  if (quarantined) return quarantined.tool.name;
  const some = skills.slice(0, 20).map(({ id }) => id);
  throw new RialtoError('invalid_params', {
    message: `metadata.skillId must name a skill, one of: ${some.join(', ')}${skills.length > 20 ? ', …' : ''}`,
  });
}

/** The sender of the message as a client of the server: a question ends the run, and the next message answers it. */
function peerOf(
  { task }: TaskRun,
  { answers, asked }: Pick<ToolCall, 'answers' | 'asked'>,
  tell: (update: TaskUpdate) => void,
): Peer {
  const progress = progressOf(systemClock);
  return {
    key: task.id,
    era: 'modern',
    wantsAlone: false,
    capabilities: askable,
    progressToken: task.id,
    ...(answers && { answers }),
    ...(asked && { questions: { [asked.name]: asked.text } }),
    ask: () =>
      Promise.reject(new RialtoError('unavailable', { message: 'this caller gets questions only in results' })),
    tell: (method, params) => {
      const update = method === 'notifications/progress' ? progress(params) : undefined;
      if (update) tell(update);
    },
  };
}

/** Yields a result as the end of its task. Throws `remote_invalid_response` when the result cannot be stored. */
function* ending(tool: string, result: JsonObject): Generator<TaskUpdate, void> {
  const { state, message, artifacts = [] } = endOf(tool, result);
  for (const artifact of artifacts) yield { artifact, lastChunk: true };
  yield { status: { state, ...(message && { message }) } };
}

function endOf(tool: string, result: JsonObject): Told {
  if (containsUnstorable(result))
    throw new RialtoError('remote_invalid_response', { message: 'the result of the tool cannot be stored' });
  if (result.isError === true) {
    const text = (textOfResult(result) || 'the tool failed without an error text').slice(0, maxWords).toWellFormed();
    return { state: 'TASK_STATE_FAILED', message: { parts: [{ text }], metadata: { errorCode: 'remote_error' } } };
  }
  const parts = partsOf(result);
  const artifacts = parts.length > 0 ? [{ artifactId: 'result', name: tool, parts }] : [];
  return { state: 'TASK_STATE_COMPLETED', artifacts };
}

/** Returns how the task of a published agent shows the result and the questions of the server's task. */
function publishedView(tool: string): ToolTaskView {
  return { ended: (result) => endOf(tool, result), asks: (questions) => askingAll(questions) };
}
