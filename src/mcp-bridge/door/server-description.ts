import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { VERSION } from '../../platform/telemetry/version.js';
import { tasksExtension } from '../../protocol/mcp/server-task.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { mayAnswerByTask } from '../../upstreams/upstream-tasks.types.js';

/** The self-description of a door: of the gateway itself, or of the one MCP server behind the door. */
export interface ServerDescription {
  readonly serverInfo: JsonObject;
  readonly capabilities: JsonObject;
  /** In the 2026-07-28 revision, tasks are an extension. */
  readonly extensions?: JsonObject;
  readonly instructions?: string;
}

const changing = { listChanged: true };

export const gatewayDescription: ServerDescription = {
  serverInfo: { name: VERSION.name, title: 'Rialto', version: VERSION.version },
  capabilities: {
    tools: changing,
    resources: { ...changing, subscribe: true },
    prompts: changing,
    completions: {},
    logging: {},
  },
  extensions: { [tasksExtension]: {} },
  instructions:
    'Each tool calls a skill of a remote A2A agent, or a tool of an MCP server; ' +
    'list_agents and send_to_agent reach the agents of this gateway. ' +
    'A result with a taskId is a task that continues at the agent.',
};

const descriptions = new WeakMap<RegisteredServer, ServerDescription>();

/** Returns the self-description of a server, without the capabilities that the gateway does not relay. */
export function descriptionOf(server: RegisteredServer): ServerDescription {
  const known = descriptions.get(server) ?? createDescription(server);
  descriptions.set(server, known);
  return known;
}

function createDescription(server: RegisteredServer): ServerDescription {
  const { serverInfo, capabilities, instructions } = server.row.offer;
  const { resources } = capabilities;
  const subscribing = isJsonObject(resources) && resources.subscribe === true && { subscribe: true };
  return {
    // The 2026-07-28 revision requires no name, but clients of the 2025 era refuse a server without one.
    serverInfo: { name: server.row.name, version: 'unknown', ...serverInfo },
    capabilities: {
      ...(capabilities.tools && { tools: changing }),
      ...(resources && { resources: { ...changing, ...subscribing } }),
      ...(capabilities.prompts && { prompts: changing }),
      ...(capabilities.completions && { completions: {} }),
      ...(capabilities.logging && { logging: {} }),
    },
    ...(mayAnswerByTask(server) && { extensions: { [tasksExtension]: {} } }),
    ...(instructions !== undefined && { instructions }),
  };
}

const methods: Readonly<Record<string, readonly string[]>> = {
  tools: ['tools/list', 'tools/call'],
  resources: ['resources/list', 'resources/templates/list', 'resources/read'],
  prompts: ['prompts/list', 'prompts/get'],
  completions: ['completion/complete'],
};
const capabilityOf = new Map(
  Object.entries(methods).flatMap(([capability, all]) => all.map((method) => [method, capability] as const)),
);

/** Returns the methods for the capabilities of a door, without those that exist in one era only. */
export function methodsOf({ capabilities }: ServerDescription): string[] {
  return Object.keys(capabilities).flatMap((capability) => methods[capability] ?? []);
}

/** True when a method is one of `methodsOf`. */
export function serves({ capabilities }: ServerDescription, method: string): boolean {
  const capability = capabilityOf.get(method);
  return capability !== undefined && capabilities[capability] !== undefined;
}

/** Returns the methods with which clients of the 2025 era change their session. */
export function sessionMethodsOf({ capabilities: { logging, resources } }: ServerDescription): string[] {
  const watches = isJsonObject(resources) && resources.subscribe === true;
  return [
    ...(logging === undefined ? [] : ['logging/setLevel']),
    ...(watches ? ['resources/subscribe', 'resources/unsubscribe'] : []),
  ];
}
