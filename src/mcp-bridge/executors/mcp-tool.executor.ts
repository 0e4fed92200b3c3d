import { Injectable } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { containsUnstorable } from '../../protocol/json-text.js';
import { upstreamName } from '../../protocol/mcp/tool-names.js';
import type { ExecutorConfig } from '../../registry/published.types.js';
import type { TaskExecutor, TaskRun, TaskUpdate } from '../../tasks/executor.port.js';
import type { UpstreamTool } from '../../upstreams/registered-server.types.js';
import { UpstreamCalls } from '../../upstreams/upstream-calls.service.js';
import { UpstreamsService } from '../../upstreams/upstreams.service.js';
import { argumentsIn } from './message-arguments.js';
import { progressOf } from './progress-update.js';
import { partsOf, wordsOf } from './result-parts.js';
import { answersIn, asking, questionIn, type AskedByTool } from './tool-question.js';
import { asFailure, mayRepeat, outcomeUnknown, skillOf, turnOf, working } from './turn.js';
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
  ) {}

  async *execute(run: TaskRun): AsyncGenerator<TaskUpdate, void> {
    if (run.task.state === 'TASK_STATE_SUBMITTED') yield working;
    const turn = turnOf(run);
    const { asked, called } = (run.task.memo ?? {}) as Memo;
    const { answers, wrong } = asked && asked.turn < turn ? answersIn(run.message, asked) : {};
    if (asked && !answers) {
      yield asking(asked, wrong);
      return;
    }
    const call = await this.callOf(run, asked, answers);
    if (called === turn && !(call.target && mayRepeat(call.target.tool))) throw outcomeUnknown(call.tool);
    yield { memo: { ...(asked && { asked }), called: turn } as unknown as Json };
    const result = yield* this.result(run, call);
    if ('asked' in result) {
      yield { memo: { asked: result.asked } as unknown as Json };
      yield asking(result.asked);
    } else yield* ending(call.tool, result.result);
  }

  private async callOf(run: TaskRun, asked?: AskedByTool, answers?: JsonObject): Promise<ToolCall> {
    const { serverId } = run.agent.executor as McpToolConfig;
    const { servers } = await this.upstreams.snapshot(run.agent.org.id);
    const server = servers.find(({ row }) => row.serverId === serverId);
    if (!server)
      throw new RialtoError('not_found', { message: 'the MCP server behind this agent is no longer registered' });
    const tool = asked?.tool ?? toolOf(run);
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
  ): AsyncGenerator<TaskUpdate, { result: JsonObject } | { asked: AskedByTool }> {
    let { answers } = call;
    for (let round = 0; round < maxRounds; round++) {
      const result = yield* whileWorking((tell) => this.called(run, { ...call, answers }, tell));
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
    { tool, target, args, answers }: ToolCall,
    tell: (update: TaskUpdate) => void,
  ): Promise<JsonObject> {
    const { serverId } = run.agent.executor as McpToolConfig;
    const ctx = { ...run.ctx, signal: run.signal, peer: peerOf(run, answers, tell) };
    try {
      return await this.calls.call(ctx, { target, canonical: upstreamName(serverId, tool), serverId, args });
    } catch (error) {
      if (target || RialtoError.from(error).code !== 'not_found') throw asFailure(error);
      throw new RialtoError('not_found', { message: `the MCP server behind this agent has no tool "${tool}"` });
    }
  }
}

/** The configured tool, else the skill of the message; where the agent has but one, nobody needs to name it. */
function toolOf(run: TaskRun): string {
  const { executor, skills } = run.agent;
  const { tool } = executor as McpToolConfig;
  if (tool !== undefined) return tool;
  const asked = skillOf(run) ?? (skills.length === 1 ? skills[0]!.id : undefined);
  if (asked !== undefined && skills.some(({ id }) => id === asked)) return asked;
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
    capabilities: { elicitation: { form: {} } },
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
  if (containsUnstorable(result))
    throw new RialtoError('remote_invalid_response', { message: 'the result of the tool cannot be stored' });
  if (result.isError === true) {
    const text = (wordsOf(result) || 'the tool failed and did not say why').slice(0, maxWords).toWellFormed();
    const message = { parts: [{ text }], metadata: { errorCode: 'remote_error' } };
    yield { status: { state: 'TASK_STATE_FAILED', message } };
    return;
  }
  const parts = partsOf(result);
  if (parts.length > 0) yield { artifact: { artifactId: 'result', name: tool, parts }, lastChunk: true };
  yield { status: { state: 'TASK_STATE_COMPLETED' } };
}
