import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';
import type { AgentCard, Message, Task, TaskState } from 'a2a-js-sdk-0.3';
import {
  DefaultRequestHandler,
  InMemoryTaskStore,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from 'a2a-js-sdk-0.3/server';
import { jsonRpcHandler, restHandler, UserBuilder } from 'a2a-js-sdk-0.3/server/express';
import { A2AService, grpcService, UserBuilder as GrpcUserBuilder } from 'a2a-js-sdk-0.3/server/grpc';
import express from 'express';

export type OlderBinding = 'JSONRPC' | 'HTTP+JSON' | 'GRPC';

/** An agent of the official SDK of the line 0.3, which offers one binding. */
export interface OlderSdkAgent {
  readonly url: string;
  readonly received: Message[];
  readonly canceled: string[];
  close(): Promise<void>;
}

const skills = ['echo', 'slow', 'ask'].map((id) => ({ id, name: id, description: `Does ${id}.`, tags: [id] }));

/**
 * The skill `echo` answers with the received parts in an artifact, `slow` works until it is canceled, `ask` asks once
 * and then answers like `echo`.
 */
class OlderExecutor implements AgentExecutor {
  readonly received: Message[] = [];
  readonly canceled: string[] = [];
  private readonly stopping = new AbortController();

  async execute(context: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const { userMessage, taskId, contextId, task } = context;
    this.received.push(userMessage);
    const skill = skillOf(userMessage);
    const history = task?.history ?? [userMessage];
    const begun: Task = { kind: 'task', id: taskId, contextId, status: { state: 'working' }, history };
    bus.publish(begun);
    if (skill === 'ask' && !task) return publishStatus(bus, begun, 'input-required', 'Which one?');
    if (skill === 'slow') return void (await wait(2 ** 31 - 1, 0, this.stopping).catch(() => undefined));
    const artifact = { artifactId: 'answer', parts: userMessage.parts };
    bus.publish({ kind: 'artifact-update', taskId, contextId, artifact, lastChunk: true });
    publishStatus(bus, begun, 'completed');
  }

  cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    this.canceled.push(taskId);
    publishStatus(bus, { id: taskId, contextId: 'unknown' }, 'canceled');
    return Promise.resolve();
  }

  stop(): void {
    this.stopping.abort();
  }
}

/** Starts an agent of the SDK of the line 0.3. HTTP serves its card, which lists one binding. */
export async function startOlderSdkAgent(binding: OlderBinding): Promise<OlderSdkAgent> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const grpc = new GrpcServer();
  const addresses = { JSONRPC: `${url}/rpc`, 'HTTP+JSON': `${url}/rest`, GRPC: await bind(grpc) };
  const card: AgentCard = {
    protocolVersion: '0.3.0',
    name: `Older ${binding}`,
    description: 'An agent of the SDK 0.3.',
    version: '1.0.0',
    url: addresses[binding],
    preferredTransport: binding,
    capabilities: { streaming: true },
    defaultInputModes: ['application/json', 'text/plain'],
    defaultOutputModes: ['application/json', 'text/plain'],
    skills,
  };
  const executor = new OlderExecutor();
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
  const handlers = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  const app = express().get('/.well-known/agent-card.json', (_request, response) => void response.json(card));
  if (binding === 'JSONRPC') app.use('/rpc', jsonRpcHandler(handlers));
  if (binding === 'HTTP+JSON') app.use('/rest', restHandler(handlers));
  if (binding === 'GRPC')
    grpc.addService(A2AService, grpcService({ requestHandler, userBuilder: GrpcUserBuilder.noAuthentication }));
  server.on('request', app);
  const close = async (): Promise<void> => {
    executor.stop();
    grpc.forceShutdown();
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  };
  return { url, received: executor.received, canceled: executor.canceled, close };
}

/** Returns the skill of a message: JSON-RPC has it in a member of its own, the other bindings in the metadata. */
function skillOf({ metadata, ...message }: Message & { skill?: { skillId?: string } }): unknown {
  return message.skill?.skillId ?? metadata?.skillId;
}

function publishStatus(
  bus: ExecutionEventBus,
  { id: taskId, contextId }: Pick<Task, 'id' | 'contextId'>,
  state: TaskState,
  text?: string,
): void {
  const about = { messageId: randomUUID(), role: 'agent', taskId, contextId } as const;
  const parts: Message['parts'] = [{ kind: 'text', text: text ?? '' }];
  const message: Message = { kind: 'message', ...about, parts };
  const status = { state, timestamp: new Date().toISOString(), ...(text !== undefined && { message }) };
  bus.publish({ kind: 'status-update', taskId, contextId, status, final: true });
  bus.finished();
}

function bind(grpc: GrpcServer): Promise<string> {
  return new Promise((resolve, reject) => {
    grpc.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(`127.0.0.1:${port}`),
    );
  });
}
