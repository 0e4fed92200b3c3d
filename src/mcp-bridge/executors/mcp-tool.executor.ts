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
import { UpstreamCalls } from '../../upstreams/upstream-calls.js';
import type { TaskTaker } from '../../upstreams/upstream-tasks.types.js';
import { UpstreamsService } from '../../upstreams/upstreams.service.js';
import { argumentsIn } from './message-arguments.js';
import { progressOf } from './progress-update.js';
import { partsOf, wordsOf } from './result-parts.js';
import { answersIn, answersTo, asking, askingAll, questionIn, type AskedByTool } from './tool-question.js';
import { asFailure, callerLost, isUnanswered, mayRepeat, outcomeUnknown, skillOf, turnOf, working } from './turn.js';
import { whileWorking } from './while-working.js';

type McpToolConfig = Extract<ExecutorConfig, { kind: 'mcp-tool' }>;

/** What a later run has to know. */
interface Memo {
  /** The turn in which the tool was called; without its end, nobody knows what became of it. */
  readonly called?: number;
  /** What the tool wants to know; the next message answers it. */
  readonly asked?: AskedByTool;
}

interface ToolCall {
  readonly tool: string;
  readonly target: UpstreamTool | undefined;
  readonly args: JsonObject;
  readonly answers?: JsonObject;
}

/** Whoever sends a message can be asked to fill in a form. */
const askable: JsonObject = { elicitation: { form: {} } };
/** How often a server may put its caller off without a question. */
const maxRounds = 10;
const maxWords = 10_000;

/**
 * The work of an agent of ours done by a tool of an MCP server: a message is a call of it, decided as one of its caller's. A call is
 * remembered before it is made: one whose process was lost is made again only where the server says that this does no harm.
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
    if (run.task.state === 'TASK_STATE_SUBMITTED') yield working;
    const turn = turnOf(run);
    const { asked, called } = (run.task.memo ?? {}) as Memo;
    const remote = toolTaskOf(run.task);
    if (remote) return yield* this.goOn(run, remote, called === turn);
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

  /** Once its server has a task for it, whoever comes looks. */
  leavesWork(run: Pick<TaskRun, 'task' | 'message'>): boolean {
    return toolTaskOf(run.task) !== undefined && (run.task.memo as Memo).called === turnOf(run);
  }

  async abandon(run: Pick<TaskRun, 'ctx' | 'task'>): Promise<void> {
    const remote = toolTaskOf(run.task);
    if (remote) await this.tasks.abandon(run, remote);
  }

  /** What becomes of the task of a server; a message that answers its questions goes there first. */
  private async *goOn(run: TaskRun, remote: ToolTask, isTold: boolean): AsyncGenerator<TaskUpdate, void> {
    const view = run.agent.id === remote.server ? unchanged : publishedView(remote.tool);
    const { answers, again } = isTold ? {} : answersTo(run);
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
    if (asked) return { tool, target, args: asked.args, answers };
    const found = argumentsIn(run.message, (target?.tool.inputSchema ?? {}) as JsonObject);
    if (!found.ok) throw new RialtoError('invalid_params', { message: found.reason });
    return { tool, target, args: found.args };
  }

  /** What the tool answers at last, or wants to know of its caller. */
  private async *result(
    run: TaskRun,
    call: ToolCall,
  ): AsyncGenerator<TaskUpdate, { result: JsonObject } | { asked: AskedByTool } | BegunCall> {
    let { answers } = call;
    let first: ServerTask | undefined;
    const take: TaskTaker['take'] = (task) => Promise.resolve({ first: (first = task) as unknown as JsonObject });
    const tasks = { admit: () => undefined, take };
    for (let round = 0; round < maxRounds; round++) {
      const result = yield* whileWorking((tell) => this.called(run, { ...call, answers, tasks }, tell));
      if (first)
        return { ...call, target: call.target!, canonical: call.target!.canonical, first, capabilities: askable };
      if (result.resultType !== 'input_required') return { result };
      const asked = questionIn(result, { ...call, turn: turnOf(run) });
      if (asked) return { asked };
      answers = { inputResponses: {}, ...('requestState' in result && { requestState: result.requestState! }) };
    }
    throw new RialtoError('remote_timeout', {
      message: `the MCP server put the call off more than ${maxRounds} times`,
    });
  }

  private async called(
    run: TaskRun,
    { tool, target, args, answers, tasks }: ToolCall & { readonly tasks: TaskTaker },
    tell: (update: TaskUpdate) => void,
  ): Promise<JsonObject> {
    const { serverId } = run.agent.executor as McpToolConfig;
    const ctx = { ...run.ctx, signal: run.signal, peer: peerOf(run, answers, tell) };
    try {
      return await this.calls.call(ctx, { target, canonical: upstreamName(serverId, tool), serverId, args, tasks });
    } catch (thrown) {
      const error = asFailure(thrown);
      if (target && isUnanswered(error) && !mayRepeat(target.tool) && !run.signal.aborted)
        throw outcomeUnknown(tool, error.message, error);
      if (target || error.code !== 'not_found') throw error;
      throw new RialtoError('not_found', { message: `the MCP server behind this agent has no tool "${tool}"` });
    }
  }
}

/** The configured tool, else the skill of the message; where the agent has but one, nobody needs to name it. */
function toolOf(run: TaskRun, { tools }: Pick<RegisteredServer, 'tools'>): string {
  const { executor, skills } = run.agent;
  const { tool } = executor as McpToolConfig;
  if (tool !== undefined) return tool;
  const asked = skillOf(run) ?? (skills.length === 1 ? skills[0]!.id : undefined);
  if (asked !== undefined && skills.some(({ id }) => id === asked)) return asked;
  // One in quarantine is no skill; whoever may call it is told so by the call.
  const held = tools.find(({ tool: { name }, quarantine }) => quarantine && name === asked);
  if (held) return held.tool.name;
  const some = skills.slice(0, 20).map(({ id }) => id);
  throw new RialtoError('invalid_params', {
    message: `metadata.skillId names what is wanted, one of: ${some.join(', ')}${skills.length > 20 ? ', …' : ''}`,
  });
}

/** Whoever sent the message, as a client of the server: a question ends the run, and the next message answers it. */
function peerOf({ task }: TaskRun, answers: JsonObject | undefined, tell: (update: TaskUpdate) => void): Peer {
  const progress = progressOf(systemClock);
  return {
    key: task.id,
    era: 'modern',
    wantsAlone: false,
    capabilities: askable,
    progressToken: task.id,
    ...(answers && { answers }),
    ask: () => Promise.reject(new RialtoError('unavailable', { message: 'this caller is asked by results alone' })),
    tell: (method, params) => {
      const update = method === 'notifications/progress' ? progress(params) : undefined;
      if (update) tell(update);
    },
  };
}

/** A result as the end of its task. Throws `remote_invalid_response` for one that nobody can store. */
function* ending(tool: string, result: JsonObject): Generator<TaskUpdate, void> {
  const { state, message, artifacts = [] } = endOf(tool, result);
  for (const artifact of artifacts) yield { artifact, lastChunk: true };
  yield { status: { state, ...(message && { message }) } };
}

function endOf(tool: string, result: JsonObject): Told {
  if (containsUnstorable(result))
    throw new RialtoError('remote_invalid_response', { message: 'the result of the tool cannot be stored' });
  if (result.isError === true) {
    const text = (wordsOf(result) || 'the tool failed and did not say why').slice(0, maxWords).toWellFormed();
    return { state: 'TASK_STATE_FAILED', message: { parts: [{ text }], metadata: { errorCode: 'remote_error' } } };
  }
  const parts = partsOf(result);
  const artifacts = parts.length > 0 ? [{ artifactId: 'result', name: tool, parts }] : [];
  return { state: 'TASK_STATE_COMPLETED', artifacts };
}

/** How the task of an agent of ours tells what the task of a server comes to. */
function publishedView(tool: string): ToolTaskView {
  return { ended: (result) => endOf(tool, result), asks: (questions) => askingAll(questions) };
}
