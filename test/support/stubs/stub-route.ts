import type { Dialect, Wire } from './stub-wire.js';

export type Operation =
  'card' | 'send' | 'stream' | 'get' | 'list' | 'cancel' | 'subscribe' | 'push' | 'extendedCard' | 'unknown';

export interface Route {
  operation: Operation;
  dialect: Dialect;
  /** The JSON-RPC id, as received. */
  rpcId?: unknown;
  /** JSON-RPC params, or the REST body. */
  params: Wire;
  /** The task of the request: from the message, the params or the path. */
  taskId?: string;
}

const rpcOperations: Record<string, [Dialect, Operation]> = {
  SendMessage: ['v1-jsonrpc', 'send'],
  SendStreamingMessage: ['v1-jsonrpc', 'stream'],
  GetTask: ['v1-jsonrpc', 'get'],
  ListTasks: ['v1-jsonrpc', 'list'],
  CancelTask: ['v1-jsonrpc', 'cancel'],
  SubscribeToTask: ['v1-jsonrpc', 'subscribe'],
  CreateTaskPushNotificationConfig: ['v1-jsonrpc', 'push'],
  GetExtendedAgentCard: ['v1-jsonrpc', 'extendedCard'],
  'message/send': ['v03-jsonrpc', 'send'],
  'message/stream': ['v03-jsonrpc', 'stream'],
  'tasks/get': ['v03-jsonrpc', 'get'],
  'tasks/cancel': ['v03-jsonrpc', 'cancel'],
  'tasks/resubscribe': ['v03-jsonrpc', 'subscribe'],
  'tasks/pushNotificationConfig/set': ['v03-jsonrpc', 'push'],
  'agent/getAuthenticatedExtendedCard': ['v03-jsonrpc', 'extendedCard'],
};

const restRoutes: [RegExp, Operation][] = [
  [/^POST \/message:send$/, 'send'],
  [/^POST \/message:stream$/, 'stream'],
  [/^GET \/tasks$/, 'list'],
  [/^POST \/tasks\/([^/:]+):cancel$/, 'cancel'],
  [/^(?:GET|POST) \/tasks\/([^/:]+):subscribe$/, 'subscribe'],
  [/^POST \/tasks\/([^/]+)\/pushNotificationConfigs$/, 'push'],
  [/^GET \/tasks\/([^/:]+)$/, 'get'],
  [/^GET \/(?:extendedAgentCard|card)$/, 'extendedCard'],
];

function asWire(value: unknown): Wire {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Wire) : {};
}

function asText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/**
 * Parses a JSON-RPC body. An unknown method gets the operation `unknown` and the dialect that its spelling suggests.
 */
export function routeRpc(json: unknown): Route {
  const body = asWire(json);
  const method = asText(body.method) ?? '';
  const [dialect, operation] = rpcOperations[method] ?? [
    method.includes('/') ? 'v03-jsonrpc' : 'v1-jsonrpc',
    'unknown',
  ];
  const params = asWire(body.params);
  return {
    operation,
    dialect,
    rpcId: body.id,
    params,
    taskId: asText(asWire(params.message).taskId) ?? asText(params.id),
  };
}

/** Parses a REST request line and body; undefined when no route of either version matches. */
export function routeRest(method: string, pathname: string, json: unknown): Route | undefined {
  const legacy = pathname.startsWith('/v1/');
  const path = legacy ? pathname.slice(3) : pathname;
  for (const [pattern, operation] of restRoutes) {
    const match = pattern.exec(`${method} ${path}`);
    if (!match) continue;
    const params = asWire(json);
    const taskId = match[1] ? decodeURIComponent(match[1]) : asText(asWire(params.message).taskId);
    return { operation, dialect: legacy ? 'v03-rest' : 'v1-rest', params, taskId };
  }
  return undefined;
}
