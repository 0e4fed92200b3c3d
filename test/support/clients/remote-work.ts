import type { TestGateway } from '../gateway/gateway.js';
import { startStubAgent, type StubAgent, type StubAgentOptions } from '../stubs/stub-agent.js';
import type { Behaviour } from '../stubs/stub-call.js';

/** Settings that make the polls for remote work fast enough for a test. */
export const quick = {
  RIALTO_ROLE: 'all',
  RIALTO_LOG_LEVEL: 'warn',
  A2A_CONTINUATION_POLL_MS: '60',
  A2A_CONTINUATION_RUN_WAIT_MS: '1500',
  A2A_CONTINUATION_PRECLAIM_WAIT_MS: '300',
  A2A_CONTINUATION_RESCHEDULE_MS: '60',
  A2A_CONTINUATION_POLL_TIMEOUT_MS: '400',
  A2A_CONTINUATION_MAX_ATTEMPTS: '20',
};

/** A registered agent with a skill that is called as a tool. */
export interface Remote {
  readonly agent: StubAgent;
  readonly slug: string;
  call(): Promise<any>;
  /** Calls the skill and returns the structured content, for a call that continues as a task. */
  handed(): Promise<{ taskId: string; state: string; message: string }>;
}

let count = 0;
const open: StubAgent[] = [];

export async function startRemote(
  gateway: TestGateway,
  behaviour: Behaviour,
  { timeoutMs = 1_000, ...options }: StubAgentOptions & { timeoutMs?: number } = {},
): Promise<Remote> {
  const slug = `remote_${(count += 1)}`;
  const agent = await startStubAgent({ card: 'v03', name: `Remote ${count}`, behaviour, ...options });
  open.push(agent);
  const { status } = await gateway.call('POST', '/api/a2a/agents', { url: agent.url, timeoutMs, slug });
  expect(status).toBe(201);
  const call = () => gateway.rpc('tools/call', { name: `${slug}.work`, arguments: { n: 1 } });
  return { agent, slug, call, handed: async () => (await call()).result.structuredContent };
}

export async function closeRemotes(): Promise<void> {
  await Promise.all(open.splice(0).map((agent) => agent.close()));
}

/** Calls `task_status` and returns its answer. */
export function askAgain(gateway: TestGateway, taskId: string, token?: string, waitMs = 30_000): Promise<any> {
  return gateway.rpc('tools/call', { name: 'task_status', arguments: { taskId, waitMs } }, token);
}

/** Returns the row of a continuation. */
export async function continuationOf(gateway: TestGateway, taskId: string): Promise<any> {
  return (await gateway.sql('select * from a2a_continuations where task_id = $1', [taskId]))[0];
}
