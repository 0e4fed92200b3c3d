import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { artifactsText } from '../../protocol/a2a/artifact-text.js';
import type { Message, Part, Task } from '../../protocol/a2a/model.js';
import { interruptedStates, wordOf } from '../../protocol/a2a/states.js';
import { containsUnstorable, unstorable } from '../../protocol/jsonrpc.js';
import { toolResult, type ToolResult } from '../../protocol/mcp/tool-result.js';
import { PublishedService } from '../../registry/published.service.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { TaskSendService } from '../../tasks/task-send.service.js';
import { isSettled } from '../../tasks/task-stream.service.js';
import { TaskSubmitService } from '../../tasks/task-submit.service.js';
import type { ToolCall, ToolOutcome } from './tool-call.types.js';

/**
 * Milliseconds that a call waits for a published agent; the task continues, and a later call with its `taskId` asks
 * again.
 */
const waitMs = 60_000;
const maxWords = 100_000;
const maxId = 256;

const listAgents = {
  name: 'list_agents',
  title: 'List agents',
  description: 'Lists the agents of this gateway that you may send messages to, with their skills.',
  inputSchema: { type: 'object', properties: {}, additionalProperties: false },
  annotations: { readOnlyHint: true },
};
const sendToAgent = {
  name: 'send_to_agent',
  title: 'Send to agent',
  description:
    'Sends a message to an agent of this gateway and waits for its answer. ' +
    'Give the contextId of an answer to continue a conversation, and its taskId to answer a question.',
  inputSchema: {
    type: 'object',
    properties: {
      agent: { type: 'string', description: 'The name of the agent, as list_agents shows it' },
      message: { type: 'string', description: 'Text of the message' },
      data: { type: 'object', description: 'Structured input, together with the message or instead of it' },
      contextId: { type: 'string', description: 'The contextId of an earlier answer, to continue its conversation' },
      taskId: { type: 'string', description: 'The taskId of an earlier answer that contained a question' },
    },
    required: ['agent'],
    additionalProperties: false,
  },
};

/**
 * Two tools for the agents that this gateway publishes: they use the same tasks, history and policy as A2A (RY-11).
 */
@Injectable()
export class OwnAgentTools {
  constructor(
    private readonly published: PublishedService,
    private readonly sends: TaskSendService,
    private readonly submits: TaskSubmitService,
  ) {}

  /** Returns the tools for `tools/list`; none when there is no agent that the caller may use. */
  async listed(ctx: CallContext): Promise<string[]> {
    const agents = await this.agentsFor(ctx);
    return agents.length === 0 ? [] : [JSON.stringify(listAgents), JSON.stringify(sendToAgent)];
  }

  has(name: string): boolean {
    return name === listAgents.name || name === sendToAgent.name;
  }

  /** Calls a tool. Throws the errors of a send, and `invalid_params` for bad arguments. */
  async callTool(ctx: CallContext, { name, args }: ToolCall): Promise<ToolOutcome> {
    if (name === sendToAgent.name) return this.sendMessage(ctx, args);
    const agents = (await this.agentsFor(ctx)).map(agentSummary);
    return { result: toolResult({ agents }) };
  }

  private async sendMessage(ctx: CallContext, args: JsonObject): Promise<ToolOutcome> {
    const name = textArgument(args, 'agent');
    if (name === undefined) throw new RialtoError('invalid_params', { message: 'agent is required' });
    const agent = await this.published.resolve(name, ctx.org);
    if (!agent) throw new RialtoError('not_found', { message: 'no such agent', hint: 'list_agents lists the agents' });
    const params = { message: userMessage(args) };
    const { signal } = ctx;
    const answer = await this.sends.send(ctx, agent, { params }, { waitMs, gone: signal && (() => signal) });
    if ('message' in answer) return { result: toolResult(replyContent(answer.message.parts)) };
    const { id, status } = answer.task;
    return { result: taskResult(answer.task), ...(!isSettled(status.state) && { goesOnAs: id }) };
  }

  private async agentsFor(ctx: CallContext): Promise<PublishedAgent[]> {
    const { agents } = await this.published.snapshot(ctx.org.id);
    const enabled = agents.filter((agent) => agent.enabled);
    const allowed = await Promise.all(enabled.map((agent) => this.submits.mayUse(ctx, agent)));
    return enabled.filter((_, index) => allowed[index]);
  }
}

function agentSummary({ name, description, skills }: PublishedAgent): JsonObject {
  const skillViews = skills.map((skill) => ({ id: skill.id, name: skill.name, description: skill.description }));
  return { name, description, skills: skillViews };
}

function userMessage(args: JsonObject): Message {
  const text = textArgument(args, 'message');
  const [taskId, contextId] = [textArgument(args, 'taskId', maxId), textArgument(args, 'contextId', maxId)];
  if (containsUnstorable(args)) throw new RialtoError('invalid_params', { message: `the message ${unstorable}` });
  const parts: Part[] = [
    ...(text === undefined ? [] : [{ text }]),
    ...(isJsonObject(args.data) ? [{ data: args.data }] : []),
  ];
  if (parts.length === 0) throw new RialtoError('invalid_params', { message: 'give a message, data, or both' });
  return {
    messageId: newId(),
    role: 'ROLE_USER',
    parts,
    ...(taskId !== undefined && { taskId }),
    ...(contextId !== undefined && { contextId }),
  };
}

function textArgument(args: JsonObject, name: string, maxLength = maxWords): string | undefined {
  const value = args[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value.length > 0 && value.length <= maxLength) return value;
  throw new RialtoError('invalid_params', { message: `${name} must be a text of 1 to ${maxLength} characters` });
}

/**
 * Returns the text for the model, and the ids for programs to continue with. A failed task is an error of the tool.
 */
export function taskResult({ id, contextId = '', status, artifacts = [] }: Task): ToolResult {
  const text = textsOf(status.message?.parts ?? []) || artifactsText(artifacts);
  const state = wordOf(status.state);
  const data = artifacts.flatMap(({ parts }) => parts.flatMap((part) => (part.data === undefined ? [] : [part.data])));
  const failed = ['failed', 'rejected', 'canceled'].includes(state);
  const isRunning = state === 'working' || state === 'submitted';
  const advice = isRunning ? '. Ask again with the tool task_status and this taskId.' : '';
  const hint = isRunning || interruptedStates.has(status.state) ? `\n\n(${state}; taskId ${id})${advice}` : '';
  return {
    content: [{ type: 'text', text: `${text || state}${hint}` }],
    structuredContent: { taskId: id, contextId, state, text, ...(data.length > 0 && { data }) },
    ...(failed && { isError: true }),
  };
}

function replyContent(parts: readonly Part[]): Json {
  return textsOf(parts) || (parts.find((part) => part.data !== undefined)?.data ?? '');
}

function textsOf(parts: readonly Part[]): string {
  return parts.flatMap((part) => part.text ?? []).join('\n');
}
