import { once } from 'node:events';
import { WebSocket } from 'ws';
import { message } from '../../support/clients/a2e.js';
import { publish, userMessage } from '../../support/clients/a2a.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

interface Answer {
  readonly status: number;
  readonly header: (name: string) => string | null;
}

const perMinute = 5;
const more = 25;
const limits = { RIALTO_RATE_LIMIT_PRINCIPAL: String(perMinute) };

describe('(P19) the rate limits of principals and orgs', () => {
  /** A gateway without rate limits, for the preparation of a test. */
  let free: TestGateway;
  let gateway: TestGateway;
  beforeAll(async () => {
    free = await startTestGateway();
    await publish(free);
    gateway = await startTestGateway(limits, free);
  });
  afterAll(async () => {
    await gateway.close();
    await free.close();
  });

  const call = async (path: string, token: string, body?: object, at = gateway): Promise<Answer> => {
    const headers = { 'A2A-Version': '1.0' };
    const answer = await at.call(body ? 'POST' : 'GET', path, body, token, headers);
    return { status: answer.status, header: (name) => answer.headers.get(name) };
  };
  const upgrade = async (token: string): Promise<Answer> => {
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/a2e`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const opened = once(socket, 'open').then(() => undefined);
    const refused = once(socket, 'unexpected-response').then(([, response]) => response);
    const response = await Promise.race([opened, refused]);
    socket.on('error', () => undefined).terminate();
    if (!response) return { status: 101, header: () => null };
    return { status: response.statusCode, header: (name) => response.headers[name] ?? null };
  };
  const rpc = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params });
  const doors: Record<string, (token: string, at?: TestGateway) => Promise<Answer>> = {
    'the REST API': (token, at) => call('/api/mcp/servers', token, undefined, at),
    'A2A over JSON-RPC': (token) => call('/a2a/agents/echo', token, rpc('SendMessage', { message: userMessage('hi') })),
    'A2A over REST': (token) => call('/a2a/agents/echo/message:send', token, { message: userMessage('hi') }),
    'the run view': (token) => call('/a2a/agents/echo/tasks', token),
    MCP: (token) => call('/mcp', token, rpc('ping')),
    'A2E over POST': (token) => call('/a2e', token, message('mcp/server/list/req')),
    'A2E over WebSocket': upgrade,
  };

  /** Sends more concurrent requests than allowed, and returns the accepted and the refused ones. */
  async function sendAll(ask: () => Promise<Answer>) {
    const since = performance.now();
    const answers = await Promise.all(Array.from({ length: more }, ask));
    const refilled = Math.ceil(((performance.now() - since) / 60_000) * perMinute);
    const refused = answers.filter(({ status }) => status === 429);
    return { passed: answers.length - refused.length, refused, most: perMinute + refilled };
  }

  it.each(Object.keys(doors))('accept at most their limit, and report the rest: %s', async (door) => {
    const token = await free.tokenOf('default', `at ${door}`.replaceAll(' ', '-'));
    const { passed, refused, most } = await sendAll(() => doors[door]!(token));
    expect(passed).toBeGreaterThanOrEqual(perMinute);
    expect(passed).toBeLessThanOrEqual(most);
    for (const { header } of refused) {
      expect(['ratelimit-limit', 'ratelimit-remaining'].map(header)).toEqual([String(perMinute), '0']);
      expect(Number(header('retry-after'))).toBeGreaterThan(0);
      expect(header('ratelimit-reset')).toBe(header('retry-after'));
    }
  });

  it('report in each answer of the REST API the rest of the limit that ends first', async () => {
    const token = await free.tokenOf('default', 'counts');
    const left = async () => {
      const { status, header } = await doors['the REST API']!(token);
      return [status, header('ratelimit-limit'), header('ratelimit-remaining'), header('retry-after')];
    };
    expect(await left()).toEqual([200, '5', '4', null]);
    const other = await startTestGateway({ RIALTO_RATE_LIMIT_ORG: '3' }, free);
    try {
      const { header } = await doors['the REST API']!(token, other);
      expect(['ratelimit-limit', 'ratelimit-remaining'].map(header)).toEqual(['3', '2']);
    } finally {
      await other.close();
    }
  });

  it('are counted in each process separately', async () => {
    const other = await startTestGateway(limits, free);
    try {
      const token = await free.tokenOf('default', 'walks');
      for (const at of [gateway, other]) {
        const { passed } = await sendAll(() => doors['the REST API']!(token, at));
        expect(passed).toBeGreaterThanOrEqual(perMinute);
      }
    } finally {
      await other.close();
    }
  });
});
