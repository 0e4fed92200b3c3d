import { join } from 'node:path';
import { UpstreamPool, type Addressed } from '../../../src/upstreams/connections/upstream-pool.js';
import { eventually } from '../../support/gateway/eventually.js';
import { eventStream, json, startHostile, type Reply } from '../../support/stubs/hostile-upstream.js';
import { again, Neighbourhood, type Misdeed } from '../../support/gateway/neighbourhood.js';
import { startStubAgent } from '../../support/stubs/stub-agent.js';
import type { Behaviour } from '../../support/stubs/stub-call.js';
import {
  drip,
  emptyObject,
  flood,
  gzipBomb,
  hang,
  halfClose,
  html,
  huge,
  manyHeaders,
  redirect,
  resetAtOnce,
  resetMidBody,
  wrongEnvelope,
} from '../../support/stubs/stub-hostile.js';

const inputSchema = { type: 'object' };
const named = (value: object): [string, any][] => Object.entries(value);

describe('registrations of one member of an org do not affect the others', () => {
  let near: Neighbourhood;
  beforeAll(async () => void (near = await Neighbourhood.start()));
  afterAll(() => near.close());

  const server = async (tools: unknown[] | string, calls: Record<string, Reply> = {}) => {
    const one = near.keep(await startHostile(tools, calls));
    return near.register('server', { url: one.url, timeoutMs: 60_000 });
  };
  const gone = (id: string) => near.gateway.call('DELETE', `/api/mcp/servers/${id}`, undefined, near.mallory);
  /** Lists a server and refreshes it repeatedly while the others work. */
  const listed = (id: string): Misdeed => {
    const refreshes = again(() => near.gateway.call('POST', `/api/mcp/servers/${id}/refresh`, {}, near.mallory), 2);
    return {
      ...refreshes,
      end: async () => {
        await refreshes.end!();
        await gone(id);
      },
    };
  };

  describe('lists', () => {
    const lists: Record<string, unknown[] | string> = {
      'no valid tools': '[null, 7, "text", [], {}]',
      'a tool without a schema': [{ name: 'bad' }, { name: 'good', inputSchema }],
      'an invalid schema': [{ name: 'bad', inputSchema: { type: 7, properties: [], required: 'x', $ref: {} } }],
      'a schema that refers to itself': [{ name: 'bad', inputSchema: { ...inputSchema, allOf: [{ $ref: '#' }] } }],
      'an endless pattern': [
        { name: 'bad', inputSchema: { ...inputSchema, properties: { a: { type: 'string', pattern: '^(a+)+$' } } } },
      ],
      'a schema of 20,000 levels':
        `[{"name":"bad","inputSchema":` +
        `${'{"type":"object","properties":{"a":'.repeat(20_000)}{}${'}}'.repeat(20_000)}}]`,
      'a name of 100,000 letters': [{ name: 'x'.repeat(100_000), inputSchema }],
      "names of other servers' tools": [
        { name: 'good__echo', inputSchema },
        { name: 'list_agents', inputSchema },
      ],
      'a thousand tools': Array.from({ length: 1_000 }, (_, index) => ({ name: `tool${index}`, inputSchema })),
    };
    it.each(named(lists))('of a server: %s', async (_what, tools) => {
      await near.proves(listed(await server(tools)));
    });

    const skills: Record<string, unknown> = {
      'no list': 'text',
      'no valid skills': [null, 7, 'text', [], {}],
      'a skill without an id': [{ name: 'x' }],
      'a skill of another type': [{ id: { a: 1 }, name: 7, description: null, tags: 'x', examples: [[1]] }],
      'equal ids': Array.from({ length: 50 }, () => ({ id: 'work', name: 'w', description: 'w', tags: [] })),
      'a thousand skills': Array.from({ length: 1_000 }, (_, index) => ({
        id: `skill${index}`,
        name: 's',
        description: 's',
        tags: ['x'],
      })),
    };
    it.each(named(skills))('of an agent: %s', async (_what, value) => {
      const stub = near.keep(await startStubAgent({ name: 'Bad' }));
      stub.card.skills = value;
      const register = () =>
        near.gateway.call('POST', '/api/a2a/agents', { url: stub.url, slug: near.name() }, near.mallory);
      let registered = 0;
      const misdeed = again(async () => {
        const { status, body } = registered > 5 ? { status: 0, body: {} } : await register();
        if (status === 201) registered += 1;
        else await near.gateway.call('GET', '/api/a2a/agents', undefined, near.mallory);
        if (body.id) await near.gateway.call('DELETE', `/api/a2a/agents/${body.id}`, undefined, near.mallory);
      }, 2);
      await near.proves(misdeed);
    });
  });

  describe('programs', () => {
    const script = join(process.cwd(), 'test', 'support', 'stubs', 'bad-program.mjs');
    it.each([
      ['garbage'],
      ['wrong ids'],
      ['endless line'],
      ['endless lines'],
      ['endless stderr'],
      ['endless notifications'],
      ['exit'],
      ['closed output'],
      ['silence'],
      ['forks'],
      ['busy loop'],
    ])('%s at each call', async (what) => {
      const place = { command: process.execPath, args: [script, what], timeoutMs: 60_000 };
      const id = await near.register('server', place);
      await near.proves(near.calling(`${id}__bad`));
      expect((await gone(id)).status).toBe(204);
    });

    it('E3: so many programs without an answer that the org may run no more', async () => {
      const ids: string[] = [];
      const place = { command: process.execPath, args: [script, 'silence'], timeoutMs: 60_000 };
      for (let count = 0; count < 5; count++) ids.push(await near.register('server', place));
      const rows = await near.gateway.sql<Addressed>('select id from mcp_servers where server_id = any($1)', [ids]);
      const pool = near.gateway.gateway.get(UpstreamPool);
      const used = () => rows.filter((row) => pool.loadOf(row).calls > 0).length;
      const calls: Misdeed[] = [];
      for (const id of ids) {
        calls.push(near.calling(`${id}__bad`, 1));
        await eventually(used, (count) => count >= Math.min(4, calls.length));
      }
      await near.proves({
        pending: used,
        end: () => Promise.all(calls.map((each) => each.end!())),
      });
      for (const id of ids) await gone(id);
    });
  });

  describe('connections to MCP servers', () => {
    const endless = (response: any, piece: string): void => {
      while (!response.destroyed && response.write(piece));
      if (!response.destroyed) response.once('drain', () => endless(response, piece));
    };
    const whole = { 'content-type': 'application/json' };
    const ways: Record<string, Reply> = {
      'never answers': () => undefined,
      'announces an answer that never comes': (_id, response) => void eventStream(response).flushHeaders(),
      'resets the connection': (_id, response) => void response.socket?.resetAndDestroy(),
      'disconnects in the middle': (_id, response) => {
        response.writeHead(200, { ...whole, 'content-length': '1000' }).write('{"jsonrpc":');
        setTimeout(() => response.destroy(), 20);
      },
      'drips bytes': (_id, response) => {
        response.writeHead(200, whole);
        const timer = setInterval(() => response.write(' '), 10);
        response.once('close', () => clearInterval(timer));
      },
      'answers endlessly': (_id, response) => endless(response.writeHead(200, whole), ' '.repeat(65_536)),
      'streams endlessly': (_id, response) => endless(eventStream(response), `: ${'x'.repeat(65_536)}\n`),
      'notifies endlessly': (_id, response) =>
        endless(
          eventStream(response),
          'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'.repeat(500),
        ),
      'redirects to itself': (_id, response) => void response.writeHead(307, { location: '/mcp' }).end(),
      'answers with an HTML page': (_id, response) =>
        void response.writeHead(200, { 'content-type': 'text/html' }).end('<html></html>'),
      'answers with half a JSON': (_id, response) => void response.writeHead(200, whole).end('{"jsonrpc": '),
      'answers another': (_id, response) => json(response, { jsonrpc: '2.0', id: 'x', result: { content: [] } }),
      'answers 500': (_id, response) => void response.writeHead(500).end(),
      'answers 429': (_id, response) => void response.writeHead(429, { 'retry-after': '100000' }).end(),
    };
    it.each(named(ways))('%s', async (_what, way) => {
      const id = await server([{ name: 'bad', inputSchema }], { bad: way });
      await near.proves(near.calling(`${id}__bad`));
      expect((await gone(id)).status).toBe(204);
    });
  });

  describe('connections to agents', () => {
    const behaviours: Record<string, Behaviour> = {
      'never answers': hang,
      'resets the connection': resetAtOnce,
      'resets it in the middle': resetMidBody,
      'closes it in the middle': halfClose,
      'drips bytes': drip(),
      'streams endlessly': flood(`: ${'x'.repeat(10_000)}\n\n`),
      'answers with endless white space': huge(1_000_000_000),
      'answers with a decompression bomb': gzipBomb(200_000_000),
      'answers with a thousand headers': manyHeaders(1_000, 100),
      'redirects to itself': redirect(307, '/'),
      'answers with an HTML page': html(),
      'answers with an empty object': emptyObject,
      'answers another': wrongEnvelope('wrong-id'),
      'answers in 100,000 levels': wrongEnvelope('deeply-nested'),
    };
    it.each(named(behaviours))('%s', async (_what, behaviour) => {
      const stub = near.keep(await startStubAgent({ name: 'Bad', behaviour }));
      const slug = await near.register('agent', { url: stub.url, timeoutMs: 60_000 });
      await near.proves(near.calling(`${slug}.work`));
    });
  });
});
