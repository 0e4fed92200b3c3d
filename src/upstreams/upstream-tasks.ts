import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { JsonObject } from '../kernel/json.js';
import { readServerTask, type ServerTask } from '../protocol/mcp/server-task.js';
import { answerQuestions, isAnswerable, questionsOf } from './client-requests/client-requests.js';
import type { RegisteredServer } from './registered-server.types.js';
import { UpstreamCalls } from './upstream-calls.js';
import { CallerConnections } from './credentials/caller-connections.js';
import { resultOf } from './upstream-result.js';
import { withTasks, type TaskAtServer } from './upstream-tasks.types.js';
import { UpstreamsService } from './upstreams.service.js';

interface Ask {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/**
 * Tasks that MCP servers answered calls with. All of it is part of the act that the call was: decided again like it, and no act of its own.
 * Throws `not_found` when the server is gone, `denied` when the caller may no longer call the tool, and what UpstreamConnection.request throws.
 */
@Injectable()
export class UpstreamTasks {
  constructor(
    private readonly upstreams: UpstreamsService,
    private readonly calls: UpstreamCalls,
    private readonly lines: CallerConnections,
  ) {}

  /** `tasks/get`: with the result of the call as its caller gets it, and with its questions checked. */
  async look(ctx: CallContext, task: TaskAtServer, ask: Ask): Promise<ServerTask> {
    const server = await this.permitted(ctx, task);
    const seen = readServerTask(await this.request(ctx, server, task, 'tasks/get', {}, ask));
    if (seen.taskId !== task.taskId)
      throw new RialtoError('remote_invalid_response', { message: 'the MCP server answered with another task' });
    if (seen.status === 'input_required') questionsOf({ inputRequests: seen.inputRequests ?? {} });
    if (seen.status !== 'completed') return seen;
    if (!seen.result)
      throw new RialtoError('remote_invalid_response', { message: 'the MCP server completed a task without a result' });
    return { ...seen, result: resultOf(seen.result, 'tool') };
  }

  /** `tasks/update`: answers by the names of the questions. */
  async answer(ctx: CallContext, task: TaskAtServer, inputResponses: JsonObject, ask: Ask): Promise<void> {
    const server = await this.permitted(ctx, task);
    await this.request(ctx, server, task, 'tasks/update', { inputResponses }, ask);
  }

  /** Decides what the server wants its caller to be asked, and remembers it, as for the questions of any call. Throws `denied`. */
  async decideQuestions(ctx: CallContext, { server: id }: TaskAtServer, inputRequests: JsonObject): Promise<void> {
    const { row } = await this.serverOf(ctx, id);
    await this.calls.decideQuestions(ctx, row.serverId, { inputRequests });
  }

  /** `tasks/cancel`: not decided, for nobody is to leave work behind. */
  async cancel(ctx: CallContext, task: Pick<TaskAtServer, 'server' | 'taskId'>, ask: Ask): Promise<void> {
    await this.request(ctx, await this.serverOf(ctx, task.server), task, 'tasks/cancel', {}, ask);
  }

  /**
   * Begins to answer questions that need nobody, or that the caller can be asked while it waits: a client of the 2025 era. Undefined when there
   * are others among them. The answers reject when the caller gives none.
   */
  async answersNow(
    ctx: CallContext,
    { server: id }: TaskAtServer,
    inputRequests: JsonObject,
    signal: AbortSignal,
  ): Promise<{ readonly answers: Promise<JsonObject> } | undefined> {
    const { row } = await this.serverOf(ctx, id);
    const questions = questionsOf({ inputRequests });
    const peer = ctx.peer?.era === 'legacy' ? ctx.peer : undefined;
    if (!questions.every(([, question]) => isAnswerable(question, peer, row.roots))) return undefined;
    const asked = { peer: this.calls.decidedPeer(ctx, row.serverId, peer), roots: row.roots, signal };
    return { answers: answerQuestions(asked, questions) };
  }

  private async permitted(ctx: CallContext, { server: id, canonical, args }: TaskAtServer): Promise<RegisteredServer> {
    const server = await this.serverOf(ctx, id);
    if (await this.calls.mayStillCall(ctx, { canonical, serverId: server.row.serverId, args })) return server;
    throw new RialtoError('denied', { message: 'its caller may no longer call this tool', data: { verb: canonical } });
  }

  private async serverOf(ctx: CallContext, id: string): Promise<RegisteredServer> {
    const { servers } = await this.upstreams.snapshotFor(ctx);
    const server = servers.find(({ row }) => row.id === id);
    if (!server) throw new RialtoError('not_found', { message: 'the MCP server of this task is no longer registered' });
    return server;
  }

  private request(
    ctx: CallContext,
    { row }: RegisteredServer,
    { taskId, capabilities }: Pick<TaskAtServer, 'taskId'> & Partial<TaskAtServer>,
    method: string,
    params: JsonObject,
    ask: Ask,
  ): Promise<JsonObject> {
    const declared = { ...ask, capabilities: withTasks(capabilities) };
    return this.lines.use(ctx, row, (lines) => lines.request(method, { taskId, ...params }, declared));
  }
}
