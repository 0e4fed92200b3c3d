import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { VERSION } from '../../platform/telemetry/version.js';
import { tasksExtension } from '../../protocol/mcp/server-task.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { mayAnswerByTask } from '../../upstreams/upstream-tasks.types.js';

/** What a door says of itself: its own name and abilities, or those of the one MCP server behind it. */
export interface Face {
  readonly serverInfo: JsonObject;
  readonly capabilities: JsonObject;
  /** The 2026-07-28 revision has tasks as an extension. */
  readonly extensions?: JsonObject;
  readonly instructions?: string;
}

const changing = { listChanged: true };

export const gatewayFace: Face = {
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
    'Each tool calls a skill of a remote A2A agent, or a tool of an MCP server; list_agents and send_to_agent reach the agents of this gateway. A result with a taskId is a task that goes on at the agent.',
};

const faces = new WeakMap<RegisteredServer, Face>();

/** A server as it says it is, but for what the gateway does not hand on. */
export function faceOf(server: RegisteredServer): Face {
  const known = faces.get(server) ?? madeOf(server);
  faces.set(server, known);
  return known;
}

function madeOf(server: RegisteredServer): Face {
  const { serverInfo, capabilities, instructions } = server.row.offer;
  const { resources } = capabilities;
  const watching = isJsonObject(resources) && resources.subscribe === true && { subscribe: true };
  return {
    // The 2026-07-28 revision asks nobody for a name, clients of the 2025 era refuse a server without.
    serverInfo: { name: server.row.name, version: 'unknown', ...serverInfo },
    capabilities: {
      ...(capabilities.tools && { tools: changing }),
      ...(resources && { resources: { ...changing, ...watching } }),
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

/** The methods of what a door can do, but for those that only one era has. */
export function methodsOf({ capabilities }: Face): string[] {
  return Object.keys(capabilities).flatMap((capability) => methods[capability] ?? []);
}

/** Whether a method is one of `methodsOf`. */
export function serves({ capabilities }: Face, method: string): boolean {
  const capability = capabilityOf.get(method);
  return capability !== undefined && capabilities[capability] !== undefined;
}

/** What clients of the 2025 era change of their session. */
export function sessionMethodsOf({ capabilities: { logging, resources } }: Face): string[] {
  const watches = isJsonObject(resources) && resources.subscribe === true;
  return [
    ...(logging === undefined ? [] : ['logging/setLevel']),
    ...(watches ? ['resources/subscribe', 'resources/unsubscribe'] : []),
  ];
}
