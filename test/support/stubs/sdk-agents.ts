import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AgentCard } from '@a2a-js/sdk';
import { parseLegacyAgentCard } from '@a2a-js/sdk/compat/v0_3/client';
import { DefaultRequestHandler, InMemoryTaskStore, type A2ARequestHandler } from '@a2a-js/sdk/server';
import { jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import { A2AService, grpcService, UserBuilder as GrpcUserBuilder } from '@a2a-js/sdk/server/grpc';
import { Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { SdkExecutor } from './sdk-executor.js';
import type { Wire } from './stub-wire.js';

/** An agent that the official SDK runs. It shows the answers of a correct foreign implementation. */
export interface SdkAgent {
  url: string;
  cardUrl: string;
  /** The served card, as plain JSON of its version. */
  card: Wire;
  executor: SdkExecutor;
  close(): Promise<void>;
}

const skills = [
  { id: 'echo', name: 'Echo', description: 'Answers what it received.', tags: ['echo'] },
  { id: 'slow', name: 'Slow', description: 'Works until it is canceled or `ms` are over.', tags: ['slow'] },
  { id: 'ask', name: 'Ask', description: 'Asks back once.', tags: ['ask'] },
];

const about = {
  description: 'An agent of the official SDK.',
  version: '1.0.0',
  capabilities: { streaming: true, pushNotifications: true },
  defaultInputModes: ['application/json', 'text/plain'],
  defaultOutputModes: ['application/json', 'text/plain'],
  skills,
};

function v1Interface(url: string, protocolBinding: string): Wire {
  return { url, protocolBinding, protocolVersion: '1.0' };
}

type HttpBinding = 'JSONRPC' | 'HTTP+JSON';
const httpBindings: readonly HttpBinding[] = ['JSONRPC', 'HTTP+JSON'];

/** Starts an agent of v1.0 over JSON-RPC (`/rpc`) and REST (`/rest`). Its card lists `bindings`. */
export function startSdkAgentV1(bindings = httpBindings): Promise<SdkAgent> {
  return serve((app, url, executor) => {
    const paths = { JSONRPC: '/rpc', 'HTTP+JSON': '/rest' };
    const interfaces = bindings.map((binding) => v1Interface(`${url}${paths[binding]}`, binding));
    const card = { name: 'SDK Agent v1', ...about, supportedInterfaces: interfaces };
    const requestHandler = handlerOf(AgentCard.fromJSON(card), executor);
    const handlers = { requestHandler, userBuilder: UserBuilder.noAuthentication };
    app.use('/rpc', jsonRpcHandler(handlers)).use('/rest', restHandler(handlers));
    return card;
  });
}

/**
 * Starts an agent of v0.3 with the compatibility layer of the SDK: JSON-RPC at the base URL, REST under `/v1`. Its
 * card lists `bindings`. It refuses v1.0 requests.
 */
export function startSdkAgentV03(bindings = httpBindings): Promise<SdkAgent> {
  return serve((app, url, executor) => {
    const card = {
      protocolVersion: '0.3.0',
      name: 'SDK Agent v0.3',
      ...about,
      url,
      preferredTransport: bindings[0]!,
      additionalInterfaces: bindings.map((transport) => ({ url, transport })),
    };
    const requestHandler = handlerOf(parseLegacyAgentCard(card), executor);
    const handlers = { requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat: { enabled: true } };
    app.post('/', express.json(), keepSkillId, jsonRpcHandler(handlers)).use(restHandler(handlers));
    return card;
  });
}

/** Starts an agent of v1.0 over gRPC only. HTTP serves its card, which lists only gRPC. */
export async function startSdkGrpcAgent(): Promise<SdkAgent & { address: string }> {
  const grpc = new GrpcServer();
  const bound: { address: string } = { address: '' };
  const agent = await serve(async (_app, _url, executor) => {
    bound.address = await bind(grpc);
    const card = { name: 'SDK Agent gRPC', ...about, supportedInterfaces: [v1Interface(bound.address, 'GRPC')] };
    const requestHandler = handlerOf(AgentCard.fromJSON(card), executor);
    grpc.addService(A2AService, grpcService({ requestHandler, userBuilder: GrpcUserBuilder.noAuthentication }));
    return card;
  });
  const close = () => {
    grpc.forceShutdown();
    return agent.close();
  };
  return { ...agent, ...bound, close };
}

function bind(grpc: GrpcServer): Promise<string> {
  return new Promise((resolve, reject) => {
    grpc.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(`127.0.0.1:${port}`),
    );
  });
}

function handlerOf(card: AgentCard, executor: SdkExecutor): A2ARequestHandler {
  return new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
}

async function serve(
  mount: (app: Express, url: string, executor: SdkExecutor) => Wire | Promise<Wire>,
): Promise<SdkAgent> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const executor = new SdkExecutor();
  const app = express();
  const documents: { card?: Wire } = {};
  app.get('/.well-known/agent-card.json', (_request, response) => void response.json(documents.card));
  documents.card = await mount(app, url, executor);
  server.on('request', app);
  const close = async () => {
    executor.stopAll();
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  };
  return { url, cardUrl: `${url}/.well-known/agent-card.json`, card: documents.card, executor, close };
}

interface SkillMessage {
  skill?: { skillId?: string };
  metadata?: Wire;
}

/**
 * Copies the skill id to the metadata. Callers of v0.3 send it as `message.skill.skillId` (RE-18), and the SDK drops
 * members that its schema does not know.
 */
function keepSkillId(request: Request, _response: Response, next: NextFunction): void {
  const message = (request.body as { params?: { message?: SkillMessage } } | undefined)?.params?.message;
  const skillId = message?.skill?.skillId;
  if (message && skillId !== undefined) message.metadata = { ...message.metadata, skillId };
  next();
}
