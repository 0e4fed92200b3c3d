import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../kernel/clock.js';
import { newId } from '../kernel/ids.js';
import type { GatewayProbe } from './gateway-probe.js';
import { CommandError, Skipped } from './io.js';

const taskMs = 15_000;
const pollMs = 100;
/** A production org permits no task until it has its first policy. */
const deniedTask = 'the policies of the org do not permit a task; `rialto policy list` shows them';
const loopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * Actions on a running gateway that test whether they work. They leave only one task behind, which states its origin.
 */
export class GatewayTrials {
  constructor(
    private readonly gateway: GatewayProbe,
    private readonly token: string,
  ) {}

  /** Checks that the gateway makes a decision; which one depends on the policies. */
  async policy(): Promise<string> {
    const question = { principal: 'User::"rialto-doctor"', action: 'task_read', resource: 'Task::"rialto-doctor"' };
    const { decision } = await this.callApi<{ decision: string }>('POST', '/api/policies/test', question);
    return `a decision is made: ${decision}`;
  }

  /** Publishes an echo agent with a unique name, sends it a task through the queue, and deletes it. */
  async task(): Promise<string> {
    const name = `rialto-doctor-${randomBytes(4).toString('hex')}`;
    const agent = await this.callApi<{ id: string }>('POST', '/api/a2a/published', {
      name,
      description: 'Made by `rialto doctor`; it may be deleted.',
      executor: { kind: 'echo' },
      a2a_enabled: true,
      // Also where RIALTO_A2A_ACCEPT_CLEARTEXT is false.
      a2a_accept_cleartext: true,
    });
    try {
      return await this.sendMessage(name);
    } finally {
      await this.callApi('DELETE', `/api/a2a/published/${agent.id}`);
    }
  }

  /** Makes the gateway post its test event to a receiver of this command. */
  async webhook(): Promise<string> {
    const { hostname } = new URL(this.gateway.url);
    if (!loopback.test(hostname))
      throw new Skipped('tried only on the machine of the gateway: another one could not reach a receiver here');
    const received: string[] = [];
    const receiver = await listen((id) => received.push(id));
    try {
      const { port } = receiver.address() as AddressInfo;
      const url = `http://127.0.0.1:${port}/rialto-doctor`;
      const { id, status, error, detail } = await this.callApi<TestResult>('POST', '/api/webhooks/test', { url });
      if (error !== null) throw new CommandError(`the gateway could not post to ${url}: ${detail ?? error}`);
      if (!received.includes(id))
        throw new CommandError(`the gateway reports that it posted to ${url}, but nothing arrived`);
      return `delivered, answered ${status}`;
    } catch (error) {
      if (!(error instanceof CommandError) || !error.message.includes('url_not_allowed')) throw error;
      throw new Skipped(
        'this gateway does not post to loopback addresses; add 127.0.0.1/32 to RIALTO_OUTBOUND_ALLOW to try it',
      );
    } finally {
      receiver.close();
    }
  }

  private async sendMessage(agent: string): Promise<string> {
    const message = { messageId: newId(), role: 'ROLE_USER', parts: [{ text: 'rialto doctor' }] };
    const params = { message, configuration: { returnImmediately: true }, metadata: { madeBy: 'rialto doctor' } };
    const begun = systemClock.elapsed();
    const call = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params };
    const { result, error } = await this.callApi<Reply>('POST', `/a2a/agents/${agent}`, call, deniedTask);
    if (!result) throw new CommandError(`the task was refused: ${error?.message}`);
    for (; systemClock.elapsed() - begun < taskMs; await sleep(pollMs)) {
      const { state } = await this.callApi<{ state: string }>('GET', `/api/a2a/tasks/${result.task.id}`);
      if (state === 'completed') return `completed in ${Math.round(systemClock.elapsed() - begun)} ms`;
      if (state === 'failed' || state === 'rejected') throw new CommandError(`the task ended as ${state}`);
    }
    throw new CommandError(`the task did not end in ${taskMs / 1_000} s: is a worker running?`);
  }

  private callApi<Body>(method: string, path: string, body?: object, refusal?: string): Promise<Body> {
    return this.gateway.api<Body>(method, path, this.token, body, refusal);
  }
}

interface Reply {
  readonly result?: { readonly task: { readonly id: string } };
  readonly error?: { readonly message: string };
}

interface TestResult {
  readonly id: string;
  readonly status: number | null;
  readonly error: string | null;
  readonly detail: string | null;
}

async function listen(received: (id: string) => void): Promise<Server> {
  const server = createServer((request, response) => {
    received(String(request.headers['webhook-id']));
    request.resume().on('end', () => response.writeHead(204).end());
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  return server;
}
