import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { JsonObject } from '../kernel/json.js';
import { readServerTask, type ServerTask } from '../protocol/mcp/server-task.js';
import { answerQuestions, isAnswerable, questionsOf } from './client-requests/client-requests.js';
import type { RegisteredServer } from './registered-server.types.js';
import { UpstreamDecisions } from './calls/upstream-decisions.js';
import { CallerConnections } from './credentials/caller-connections.js';
import { checkedResult } from './upstream-result.js';
import { withTasks, type TaskAtServer } from './upstream-tasks.types.js';
import { UpstreamsService } from './upstreams.service.js';

interface RequestLimits {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/**
 * Manages tasks that MCP servers returned for calls. All requests belong to the act of the call: they are authorized
 * like it, and are not acts of their own. Throws `not_found` when the server was deleted, `denied` when the caller may
 * no longer call the tool, and what UpstreamConnection.request throws.
 */
@Injectable()
export class UpstreamTasks {
  constructor(
    private readonly upstreams: UpstreamsService,
    private readonly decisions: UpstreamDecisions,
    private readonly connections: CallerConnections,
  ) {}

  /** `tasks/get`: returns the task with the result as the caller of the call gets it, and checks its questions. */
  async look(ctx: CallContext, task: TaskAtServer, limits: RequestLimits): Promise<ServerTask> {
    const server = await this.permitted(ctx, task);
    const found = readServerTask(await this.requestTask(ctx, server, task, 'tasks/get', {}, limits));
    if (found.taskId !== task.taskId)
      throw new RialtoError('remote_invalid_response', { message: 'the MCP server answered with another task' });
    if (found.status === 'input_required') questionsOf({ inputRequests: found.inputRequests ?? {} });
    if (found.status !== 'completed') return found;
    if (!found.result)
      throw new RialtoError('remote_invalid_response', { message: 'the MCP server completed a task without a result' });
    return { ...found, result: await checkedResult(found.result, 'tool') };
  }

  /** `tasks/update`: sends answers by the names of the questions. */
  async answer(ctx: CallContext, task: TaskAtServer, inputResponses: JsonObject, limits: RequestLimits): Promise<void> {
    const server = await this.permitted(ctx, task);
    await this.requestTask(ctx, server, task, 'tasks/update', { inputResponses }, limits);
  }

  /** Authorizes and audits the questions of a task, like those of a call. Throws `denied`. */
  async decideQuestions(ctx: CallContext, { server: id }: TaskAtServer, inputRequests: JsonObject): Promise<void> {
    const { row } = await this.serverOf(ctx, id);
    await this.decisions.decideQuestions({ ctx }, row.serverId, { inputRequests });
  }

  /** `tasks/cancel`: not authorized, so that a caller that lost its permission can still stop its task. */
  async cancel(ctx: CallContext, task: Pick<TaskAtServer, 'server' | 'taskId'>, limits: RequestLimits): Promise<void> {
    await this.requestTask(ctx, await this.serverOf(ctx, task.server), task, 'tasks/cancel', {}, limits);
  }

  /**
   * Starts to answer questions that the gateway can answer itself, or that the waiting caller can answer: a client of
   * the 2025 era. Returns undefined when other questions are among them. The answers reject when the caller gives none.
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
    const asked = { peer: this.decisions.decidedPeer({ ctx }, row.serverId, peer), roots: row.roots, signal };
    return { answers: answerQuestions(asked, questions) };
  }

  private async permitted(ctx: CallContext, { server: id, canonical, args }: TaskAtServer): Promise<RegisteredServer> {
    const server = await this.serverOf(ctx, id);
    if (await this.decisions.mayStillCall(ctx, { canonical, serverId: server.row.serverId }, args)) return server;
    throw new RialtoError('denied', {
      message: 'the caller of this task may no longer call its tool',
      data: { verb: canonical },
    });
  }

  private async serverOf(ctx: CallContext, id: string): Promise<RegisteredServer> {
    const { servers } = await this.upstreams.snapshotFor(ctx);
    const server = servers.find(({ row }) => row.id === id);
    if (!server) throw new RialtoError('not_found', { message: 'the MCP server of this task is no longer registered' });
    return server;
  }

  private requestTask(
    ctx: CallContext,
    { row }: RegisteredServer,
    { taskId, capabilities }: Pick<TaskAtServer, 'taskId'> & Partial<TaskAtServer>,
    method: string,
    params: JsonObject,
    limits: RequestLimits,
  ): Promise<JsonObject> {
    const declared = { ...limits, capabilities: withTasks(capabilities) };
    return this.connections.use(ctx, row, ({ shared }) => shared.request(method, { taskId, ...params }, declared));
  }
}
