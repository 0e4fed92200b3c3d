import { A2AClient } from '../../src/a2a-client/client.js';
import { RialtoError } from '../../src/kernel/errors.js';
import { parseAllowList } from '../../src/platform/http/outbound/address.js';
import { SafeFetch } from '../../src/platform/http/outbound/safe-fetch.js';
import { AnswerReader } from '../../src/upstreams/transports/answer-reader.js';
import { UpstreamConnection } from '../../src/upstreams/connections/upstream-connection.js';
import { UpstreamTransports } from '../../src/upstreams/transports/upstream-transports.js';
import {
  amplyMs,
  cases,
  flawOf,
  noUnhandledRejections,
  patience,
  recovered,
  seed,
  setConnectMs,
  timeoutMs,
} from '../support/fuzz/fuzz-flaw.js';
import { disturb, poisons, scramble } from '../support/fuzz/fuzz-json.js';
import { FuzzPeer, type Asked, type GoodAnswer } from '../support/fuzz/fuzz-peer.js';
import { Random } from '../support/fuzz/random.js';
import { buildCard, type CardOptions } from '../support/stubs/stub-card.js';

describe('for any answer of an agent or an MCP server, a call ends in time with a result or a known error', () => {
  noUnhandledRejections();

  const status = { state: 'TASK_STATE_COMPLETED', timestamp: '2026-11-26T00:00:00Z' };
  const artifacts = [{ artifactId: 'a', parts: [{ text: 'hello' }, { data: { n: 1 } }] }];
  const task = { id: 't', contextId: 'c', status, artifacts };
  const older = {
    kind: 'task',
    id: 't',
    contextId: 'c',
    status: { state: 'completed' },
    artifacts: [{ artifactId: 'a', parts: [{ kind: 'text', text: 'hello' }] }],
  };
  const update = { statusUpdate: { taskId: 't', contextId: 'c', status } };
  const olderUpdate = { kind: 'status-update', taskId: 't', contextId: 'c', status: older.status, final: true };

  it.each<[string, CardOptions]>([
    ['v1', { card: 'v1' }],
    ['v1 over HTTP+JSON', { card: 'v1', speaks: ['v1-rest'] }],
    ['v03', { card: 'v03' }],
  ])(
    `${cases} answers of an agent of %s`,
    async (_, options) => {
      const random = new Random(seed);
      const isNew = options.card === 'v1';
      const peer = await FuzzPeer.start(random, ({ path, body, headers }: Asked): GoodAnswer => {
        if (path.includes('.well-known')) return { value: buildCard(options, peer.url, '/') };
        const isStream = headers.accept === 'text/event-stream' || path.endsWith(':stream');
        const isSend = path.endsWith(':send') || /^(SendMessage|message\/send)$/.test(String(body?.method));
        const plain = isNew ? (isSend ? { task } : task) : older;
        const results = isStream ? (isNew ? [{ task }, update] : [older, olderUpdate]) : [plain];
        const responses = results.map((result) => (body?.jsonrpc ? { jsonrpc: '2.0', id: body.id, result } : result));
        return isStream ? { events: responses } : { value: responses[0] };
      });
      peer.goodShare = 100;
      const open = async (): Promise<A2AClient> => {
        peer.goodShare = 100;
        const client = new A2AClient(peer.url, { allow: '127.0.0.0/8', timeoutMs: amplyMs });
        await client.getAgentCard();
        peer.goodShare = 10;
        return client;
      };
      let client = await open();
      const calls: (() => Promise<unknown>)[] = [
        () => client.send('hello', { timeoutMs }),
        () => client.getTask('t', { timeoutMs }),
        () => client.cancelTask('t', { timeoutMs }),
        async () => {
          let events = 0;
          for await (const event of client.stream('hello', { timeoutMs })) if (event && ++events > 50) break;
        },
        async () => {
          const other = new A2AClient(peer.url, { allow: '127.0.0.0/8' });
          await other.getAgentCard({ timeoutMs }).finally(() => other.close());
        },
      ];
      const flaws: string[] = [];
      for (let index = 0; index < cases; index++) {
        const flaw = await flawOf(random.pick(calls));
        if (flaw !== undefined) flaws.push(`${index}: ${flaw}`);
        if (index % 50 !== 49) continue;
        // After correct answers return, the peer is served as before.
        await client.close();
        client = await open();
        peer.goodShare = 100;
        expect(await client.send('hello')).toHaveProperty('task.id', 't');
        peer.goodShare = 10;
      }
      await client.close();
      await peer.close();
      expect(flaws.slice(0, 5)).toEqual([]);
    },
    patience,
  );

  it.each(['legacy', 'modern'] as const)(
    `${cases} answers of an MCP server of the %s era`,
    async (era) => {
      const random = new Random(seed);
      const serverInfo = { name: 'fuzz', version: '1' };
      const capabilities = { tools: {} };
      const discovered = {
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        capabilities,
        serverInfo,
        ttlMs: 0,
        cacheScope: 'private',
      };
      const result = {
        resultType: 'complete',
        content: [{ type: 'text', text: 'hello' }],
        structuredContent: { n: 1 },
      };
      const peer = await FuzzPeer.start(random, ({ method, body }: Asked): GoodAnswer | undefined => {
        if (method !== 'POST') return { status: 405, value: {} };
        if (body?.id === undefined) return undefined;
        const responseOf = (value: object): object => ({ jsonrpc: '2.0', id: body.id, ...value });
        if (body.method === 'server/discover')
          return {
            value: responseOf(era === 'modern' ? { result: discovered } : { error: { code: -32601, message: 'no' } }),
          };
        if (body.method === 'initialize')
          return { value: responseOf({ result: { protocolVersion: '2025-11-25', capabilities, serverInfo } }) };
        const answer = responseOf({ result });
        const progress = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } };
        return random.chance(0.5) ? { value: answer } : { events: [progress, answer] };
      });
      peer.goodShare = 100;
      const fetch = new SafeFetch({ allow: parseAllowList('127.0.0.0/8'), httpsOnly: false });
      const unused = undefined as never;
      const transports = new UpstreamTransports(fetch, unused, unused, unused, unused);
      const endpoint = { transport: 'streamable-http', url: `${peer.url}/mcp`, headers: {} } as const;
      const connection = new UpstreamConnection({
        server: 'fuzz',
        autoReconnect: true,
        changed: () => undefined,
        transportKind: 'streamable-http',
        transport: () => transports.openTransport(endpoint, unused),
        times: { connectMs: timeoutMs, probeMs: 100, pauseMs: () => 0 },
      });
      const flaws: string[] = [];
      for (let index = 0; index < cases; index++) {
        const call = (withinMs = timeoutMs) =>
          connection.request('tools/call', { name: 'x', arguments: {} }, { timeoutMs: withinMs });
        const flaw = await flawOf(call);
        if (flaw !== undefined) flaws.push(`${index}: ${flaw}`);
        peer.goodShare = 10;
        if (index % 50 !== 49) continue;
        peer.goodShare = 100;
        setConnectMs(connection, amplyMs);
        await recovered(() => call(amplyMs));
        setConnectMs(connection, timeoutMs);
        peer.goodShare = 10;
      }
      await connection.close();
      await peer.close();
      await fetch.close();
      expect(flaws.slice(0, 5)).toEqual([]);
    },
    patience,
  );

  it(`${cases} lines of a program`, () => {
    const random = new Random(seed);
    const good = { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: 'hello' }] } };
    const received: unknown[] = [];
    const failed: Error[] = [];
    const reader = new AnswerReader(
      (message) => received.push(message),
      (error) => failed.push(error),
    );
    for (let index = 0; index < cases * 10; index++) {
      reader.sends({ jsonrpc: '2.0', id: 1, method: 'tools/call' });
      const text = random.pick<() => string>([
        () => JSON.stringify(disturb(good, random)),
        () => scramble(Buffer.from(JSON.stringify(good)), random).toString(),
        () => JSON.stringify([good, disturb(good, random)]),
        () => random.pick(poisons)().toString(),
      ])();
      reader.readText(text);
    }
    expect(received.length).toBeGreaterThan(0);
    expect(failed.every((error) => error instanceof RialtoError && error.message !== '')).toBe(true);
  });
});
