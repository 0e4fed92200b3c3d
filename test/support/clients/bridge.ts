import { RialtoError } from '../../../src/kernel/errors.js';
import type { JsonObject } from '../../../src/kernel/json.js';
import { Deadline } from '../../../src/kernel/abort.js';
import { bridgeEndpoint, type Endpoint } from '../../../src/a2a-client/transports/endpoint-choice.js';
import type { HopHeaders } from '../../../src/a2a-client/transports/remote-hop.js';
import { BridgeTransport } from '../../../src/a2a-client/transports/bridge.transport.js';
import type { Watch } from '../../../src/a2a-client/transports/remote-wait.js';
import { normaliseCard } from '../../../src/protocol/a2a/card/card.js';
import { toolOutput } from '../../../src/protocol/a2a/remote/bridge-call.js';
import { client, closeAll, failure } from './outbound.js';
import { startStubAgent, type StubAgent, type StubAgentOptions } from '../stubs/stub-agent.js';

const open: { close(): unknown }[] = [];

/** Registers `one` to be closed by `closeOpened`, which a spec calls in `afterEach`. */
export function closing<T extends { close(): unknown }>(one: T): T {
  open.push(one);
  return one;
}

export async function closeOpened(): Promise<void> {
  for (const one of open.splice(0).reverse()) await one.close();
  await closeAll();
}

export async function stub(options: StubAgentOptions = {}): Promise<StubAgent> {
  return closing(await startStubAgent(options));
}

const plain: HopHeaders = { headersFor: () => Promise.resolve({}), renew: () => false };

export interface BridgeCallOptions {
  args?: JsonObject;
  skillId?: string;
  timeoutMs?: number;
  signal?: AbortSignal;
  headers?: HopHeaders;
  endpoint?: Endpoint;
  transport?: BridgeTransport;
  watch?: Watch;
}

type Callee = { url: string; card: object };

function endpointOf(agent: Callee): Endpoint {
  const read = normaliseCard(agent.card, { url: agent.url });
  if (!read.ok) throw new Error(JSON.stringify(read.violations));
  return bridgeEndpoint(read.card, agent.url);
}

/** Calls a skill of the agent in the wire format of the bridge. */
export async function call(agent: Callee, options: BridgeCallOptions = {}) {
  const { args = { a: 1 }, skillId = 'work', timeoutMs = 60_000, signal, headers = plain } = options;
  const transport = options.transport ?? new BridgeTransport(client());
  const endpoint = options.endpoint ?? endpointOf(agent);
  const hop = { endpoint, headers, deadline: new Deadline(timeoutMs), signals: signal ? [signal] : [] };
  return transport.callSkill(
    hop,
    { skillId, args, sessionId: `a2a-x-${skillId}-s`, baseUrl: agent.url },
    options.watch,
  );
}

export const output = async (agent: Callee, options?: BridgeCallOptions) => toolOutput(await call(agent, options));
export const fails = (agent: Callee, options?: BridgeCallOptions): Promise<RialtoError> =>
  failure(call(agent, options));
