import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { callerOf } from '../../support/gateway/caller.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { SchemaChecks } from '../../../src/platform/schemas/schema-checks.js';
import { leastOf, LoopBlocks } from '../../support/gateway/loop-blocks.js';
import { startHostile } from '../../support/stubs/hostile-upstream.js';
import { startStubAgent } from '../../support/stubs/stub-agent.js';

/** Limit for one block of the event loop by one request, in milliseconds of CPU time. */
const mostBlock = 50;
const onThisNode = LoopBlocks.isPossible ? it : it.skip;

describe('the most expensive allowed input does not block other callers', () => {
  let gateway: TestGateway;
  const stubs: { close(): Promise<unknown> }[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_CARD_REFRESH_SECONDS: '86400' });
    await publish(gateway);
    await rpc(gateway, 'SendMessage', { message: userMessage('warm') });
  });
  afterAll(async () => {
    await Promise.all(stubs.map((stub) => stub.close()));
    await gateway.close();
  });

  /** Runs the work and returns the longest block of the event loop. */
  const longestBlock = async (work: () => Promise<unknown>): Promise<number> => {
    const blocks = new LoopBlocks();
    await work();
    return blocks.end();
  };

  /** Waits for an answer of megabytes, without the work of parsing it. */
  const answered = async (path: string, init: RequestInit = {}): Promise<void> => {
    const headers = {
      authorization: `Bearer ${gateway.token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'a2a-version': '1.0',
    };
    const answer = await fetch(`${gateway.url}${path}`, { headers, ...init });
    expect([answer.status, (await answer.arrayBuffer()).byteLength > 500_000]).toEqual([200, true]);
  };

  const register = async (url: string, slug: string) =>
    expect((await gateway.call('POST', '/api/a2a/agents', { url, slug })).status).toBe(201);

  /** Builds a schema with 50 KB of patterns, within every limit of a schema. */
  const hostileSchema = (seed: number) => ({
    type: 'object',
    properties: Object.fromEntries(
      Array.from({ length: 700 }, (_, index) => [`p${index}`, { pattern: `^(a|b|c${seed}${index}){1,20}x$` }]),
    ),
  });

  onThisNode(
    'X2.4 agents with input schemas that take seconds to compile: registered, listed, and chosen from',
    async () => {
      // The start of a process copies the page tables of this one, which is several times as large under Jest as a
      // gateway.
      await gateway.gateway.get(SchemaChecks).violations('warm', hostileSchema(-1), {});
      const hostileAgent = async (skill: string, seed: number): Promise<string> => {
        const skills = [{ id: skill, inputSchema: hostileSchema(seed) }];
        const stub = await startStubAgent({ name: `agent ${seed}`, skills });
        stubs.push(stub);
        return stub.url;
      };
      await register(await hostileAgent('warm', -1), 'warm');
      const block = await leastOf(mostBlock, async (attempt) => {
        const skill = `hostile${attempt}`;
        const blocks: number[] = [];
        for (let index = 0; index < 30; index++) {
          const url = await hostileAgent(skill, attempt * 30 + index);
          blocks.push(await longestBlock(() => register(url, `${skill}_${index}`)));
        }
        const wish = { workType: skill, requiredSkills: [skill], args: { p1: 'aax' } };
        blocks.push(
          await longestBlock(async () => {
            const { status, body } = await gateway.call('POST', '/api/a2a/dispatch/explain', wish);
            expect([status, body.candidates.length]).toEqual([200, Math.min(100, 30 * (attempt + 1) + 1)]);
          }),
        );
        blocks.push(await longestBlock(() => answered('/api/a2a/agents?limit=200')));
        const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
        blocks.push(await longestBlock(() => answered('/mcp', { method: 'POST', body: list })));
        return Math.max(...blocks);
      });
      expect(block).toBeLessThan(mostBlock);
    },
    300_000,
  );

  onThisNode(
    'X2.4 a choice among cards of 50,000 words, and a list of large tasks',
    async () => {
      const block = await leastOf(mostBlock, async (attempt) => {
        const skill = `wordy${attempt}`;
        const words = Array.from({ length: 50_000 }, (_, index) => `word${attempt}${index}`);
        for (const [index, more] of [{ tags: words }, { description: words.join(' ') }, { tags: words }].entries()) {
          const stub = await startStubAgent({ name: `${skill} ${index}`, skills: [{ id: skill, ...more }] });
          stubs.push(stub);
          await register(stub.url, `${skill}_${index}`);
        }
        const wish = { workType: 'word1', description: 'word2 word3', requiredSkills: [skill] };
        const choice = longestBlock(async () => {
          const { body } = await gateway.call('POST', '/api/a2a/dispatch/explain', wish);
          expect(body.candidates.filter(({ excluded }: { excluded: unknown }) => excluded === null)).toHaveLength(3);
        });
        const blocks = [await choice];
        for (let index = 0; index < 10; index++)
          await rpc(gateway, 'SendMessage', { message: userMessage(words.join(' ').slice(0, 600_000)) });
        const params = { pageSize: 100, includeArtifacts: true };
        const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params });
        blocks.push(await longestBlock(() => answered('/a2a/agents/echo', { method: 'POST', body: list })));
        return Math.max(...blocks);
      });
      expect(block).toBeLessThan(mostBlock);
    },
    300_000,
  );

  onThisNode(
    'X2.4 an MCP server with output schemas that take seconds to compile',
    async () => {
      const patterns = (pattern: string, length: number) =>
        Array.from({ length }, () => ({ pattern: pattern.repeat(Math.floor(900 / pattern.length)) }));
      const tool = (name: string, pattern: string) => {
        const outputSchema = { type: 'object', properties: { a: { anyOf: patterns(pattern, 80) } } };
        return { name, inputSchema: { type: 'object' }, outputSchema };
      };
      const block = await leastOf(mostBlock, async (attempt) => {
        const server = await startHostile([
          ...['[\\p{L}\\p{Lu}]', '(?i:\\p{L})', '[^\\p{N}]'].map((pattern, index) => tool(`some${index}`, pattern)),
          tool('large', 'x'),
        ]);
        stubs.push(server);
        return longestBlock(async () => {
          const answer = await gateway.call('POST', '/api/mcp/servers', { id: `costly${attempt}`, url: server.url });
          expect([answer.status, answer.body.problems]).toEqual([201, []]);
        });
      });
      expect(block).toBeLessThan(mostBlock);
    },
    300_000,
  );

  onThisNode(
    'X2.3 the heaviest policies that may be stored, and a decision by them after a change',
    async () => {
      const list = (seed: number) => Array.from({ length: 1_950 }, (_, index) => index * 7 + seed).join(',');
      const block = await leastOf(mostBlock, async (attempt) => {
        const policies = Array.from({ length: 3 }, (_, index) => ({
          name: `heavy${index}`,
          text:
            'forbid(principal == User::"nobody", action, resource) ' +
            `when { [${list(attempt * 3 + index)}].contains(context.depth + 100000) };`,
        }));
        return longestBlock(async () => {
          const ids: string[] = [];
          for (const policy of policies) {
            const { status, body } = await gateway.call('POST', '/api/policies', policy);
            expect(status).toBe(201);
            ids.push(body.id);
            await rpc(gateway, 'SendMessage', { message: userMessage('decided') });
          }
          for (const id of ids) await gateway.call('DELETE', `/api/policies/${id}`);
        });
      });
      expect(block).toBeLessThan(mostBlock);
    },
    300_000,
  );
});

describe('X2.5 unread answers', () => {
  /** Memory of an API pod in the chart. */
  const limitMiB = 768;
  const sockets: Socket[] = [];
  let home: TestGateway;
  beforeAll(
    async () => void (home = await startTestGateway({ RIALTO_ROLE: 'worker', RIALTO_MAX_BODY_BYTES: '2097152' })),
  );
  afterAll(async () => {
    sockets.forEach((socket) => socket.destroy());
    await home.close();
  });

  it('use only their caller’s share of the memory, and others are served meanwhile', async () => {
    const api = home.beside({ RIALTO_ROLE: 'api', RIALTO_MAX_BODY_BYTES: '2097152' });
    const gateway = callerOf(await api.ready, home.token);
    await publish(gateway);
    const call = (token: string, method: string, params: unknown) =>
      fetch(`${gateway.url}/a2a/agents/echo`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      });
    const greedy = await gateway.tokenOf('default', 'greedy', 'member');
    const modest = await gateway.tokenOf('default', 'modest', 'member');
    const large = { message: userMessage('x'.repeat(1_900_000)) };
    const sent = async (token: string, params: object) =>
      (await (await call(token, 'SendMessage', params)).json()) as any;
    const [{ result }, mine] = [await sent(greedy, large), await sent(modest, { message: userMessage('mine') })];
    const done = { task: { status: { state: 'TASK_STATE_COMPLETED' } } };
    expect([result, mine.result]).toMatchObject([done, done]);

    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: result.task.id } });
    const head =
      `POST /a2a/agents/echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${greedy}\r\nA2A-Version: 1.0\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const port = Number(new URL(gateway.url).port);
    const begun: Promise<string>[] = [];
    for (let index = 0; index < 300; index++) {
      const socket = connect(port, '127.0.0.1');
      sockets.push(socket);
      socket.on('error', () => undefined);
      // Reads only the beginning of the answer.
      begun.push(once(socket, 'data').then(([chunk]) => (socket.pause(), (chunk as Buffer).toString('latin1', 9, 12))));
      socket.write(head + body);
    }
    const one = await call(modest, 'GetTask', { id: mine.result.task.id });
    expect(await one.json()).toMatchObject({ result: { id: mine.result.task.id } });
    const statuses = await Promise.all(begun);
    // Answers without room are refused after a wait.
    expect(new Set(statuses)).toEqual(new Set(['200', '429']));
    const peakKiB = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${api.child.pid}/status`, 'utf8'))![1]);
    expect(peakKiB / 1_024).toBeLessThan(limitMiB);
  });
});
