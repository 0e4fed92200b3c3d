import { testSecret } from '../../support/gateway/gateway.js';
import { startExampleWorld, type ExampleWorld } from '../../support/documents/example-world.js';

const runQuery = {
  id: 'run-query',
  name: 'Run Query',
  description: 'Runs a query on the data of the shop.',
  tags: ['analytics', 'sql'],
  examples: ['Show signups'],
};
const agent = {
  name: 'analytics',
  description: 'Answers questions about the data of the shop.',
  skills: [runQuery],
  apiKeyEnv: 'A2A_API_KEY',
  streaming: true,
};
const key = 'my-api-key-of-the-analytics-agent';

/* Runs the examples of agent-native's A2A page: its configuration, its messages and the programs of its callers. */
describe('the examples of agent-native', () => {
  let world: ExampleWorld;

  beforeAll(async () => {
    world = await startExampleWorld(
      'analytics.example.com',
      { A2A_API_KEY: key, RIALTO_CONFIG_FILE: '$folder/rialto.config.json', RIALTO_LEGACY_TOKENS: 'true' },
      { 'rialto.config.json': { defaultAgent: agent.name, agents: [agent] } },
    );
  });
  afterAll(() => world.close());

  /** Sends a JSON-RPC request with the key of the agent. */
  const rpc = (path: string, method: string, params: object) =>
    world.json(
      `curl https://analytics.example.com${path} \\
        -H "Authorization: Bearer $A2A_API_KEY" -H 'Content-Type: application/json' \\
        -d '${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}'`,
      { A2A_API_KEY: key },
    );
  const message = (text: string) => ({ role: 'user', parts: [{ type: 'text', text }] });

  it('AN-01 AN-02 AN-03 AN-96 the configuration of one agent gives the public card', async () => {
    const card = await world.json('curl https://analytics.example.com/.well-known/agent-card.json');
    expect(card).toMatchObject({
      name: agent.name,
      description: agent.description,
      version: '1.0.0',
      protocolVersion: '0.3',
      capabilities: { streaming: true },
      skills: [runQuery],
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer' } },
    });
    expect(new URL(card.url as string).origin).toBe('https://analytics.example.com');
    expect(card.security).toContainEqual({ apiKey: [] });
  });

  it.each(['/a2a', '/_agent-native/a2a'])('AN-09 AN-18 a message of all parts to %s', async (path) => {
    const bytes = Buffer.from('source,signups\n').toString('base64');
    const parts = [
      { type: 'text', text: 'Show signups' },
      { type: 'data', data: { dateRange: 'last-30d' } },
      { type: 'file', file: { name: 'report.csv', mimeType: 'text/csv', bytes } },
    ];
    const { result } = await rpc(path, 'message/send', { message: { role: 'user', parts } });
    expect(result.status.state).toBe('completed');
    const kinds = parts.map(({ type, ...content }) => ({ kind: type, ...content }));
    expect(result.artifacts[0].parts).toEqual(kinds);
  });

  it('AN-11 AN-12 AN-13 AN-14 the four methods', async () => {
    const sent = await rpc('/a2a', 'message/send', { message: message('Show signups'), contextId: 'c-1' });
    const { id, contextId, status } = sent.result;
    expect([contextId, status.state]).toEqual(['c-1', 'completed']);
    expect((await rpc('/a2a', 'tasks/get', { id })).result).toMatchObject({ id, status: { state: 'completed' } });
    expect((await rpc('/a2a', 'tasks/cancel', { id })).error.code).toBe(-32002);
    const started = await rpc('/a2a', 'message/send', { message: message('Show signups'), async: true });
    expect(started.result.status.state).toBe('working');
    const stream = await world.sh(
      `curl -N https://analytics.example.com/a2a -H "Authorization: Bearer $A2A_API_KEY" \\
        -H 'Content-Type: application/json' -d '${JSON.stringify({
          jsonrpc: '2.0',
          id: 2,
          method: 'message/stream',
          params: { message: message('Write the whole report') },
        })}'`,
      { A2A_API_KEY: key },
    );
    expect(stream).toContain('"state":"completed"');
  });

  it('AN-40 AN-41 the card is public, and the door needs the key', async () => {
    const post = `curl -o answer -w '%{http_code}' -X POST https://analytics.example.com/a2a -d '{}'`;
    expect(await world.sh(`${post} -H 'Content-Type: application/json'`)).toBe('401');
  });

  it('AN-25 AN-98 the client reads the card, sends and streams', async () => {
    const printed = await world.typescript(`
      import { A2AClient } from 'rialto/client';

      const client = new A2AClient('https://analytics.example.com', '${key}');

      const card = await client.getAgentCard();
      console.log(card.skills[0]!.id);

      const task = await client.send({
        role: 'user',
        parts: [{ type: 'text', text: 'Show signups' }],
      });
      console.log(task.status.state);
      console.log(JSON.stringify(task.status.message));

      for await (const update of client.stream({
        role: 'user',
        parts: [{ type: 'text', text: 'Write the whole report' }],
      })) {
        console.log(update.status.state, update.status.message !== undefined);
      }
    `);
    const [skill, state, answer, ...updates] = printed.trim().split('\n');
    expect([skill, state]).toEqual(['run-query', 'completed']);
    expect(JSON.parse(answer!)).toMatchObject({ role: 'ROLE_AGENT', parts: [{ text: 'Show signups' }] });
    expect(updates.at(-1)).toBe('completed true');
    expect(updates.length).toBeGreaterThan(1);
  });

  it('AN-25 the client takes the key of the environment, which may be missing', async () => {
    const program = `
      import { A2AClient } from 'rialto/client';

      const url = 'https://analytics.example.com';
      const client = new A2AClient(url, process.env.A2A_API_KEY);
      console.log(await client.send('Show signups').then((task) => task.status.state, (error) => error.code));
    `;
    expect(await world.typescript(program, { A2A_API_KEY: key })).toBe('completed\n');
    expect(await world.typescript(program)).toBe('unauthenticated\n');
  });

  it('AN-26 AN-27 callAgent sends a text and returns a text', async () => {
    const printed = await world.typescript(
      `
      import { callAgent } from 'rialto/client';

      const response = await callAgent(
        'https://analytics.example.com',
        'How many signups last week?',
        { apiKey: process.env.ANALYTICS_API_KEY },
      );
      console.log(response);

      const options = { apiKey: process.env.ANALYTICS_API_KEY, async: false };
      console.log(await callAgent('https://analytics.example.com', 'And at once?', options));
    `,
      { ANALYTICS_API_KEY: key },
    );
    expect(printed).toBe('How many signups last week?\nAnd at once?\n');
  });

  it('AN-84 AN-99 callAgent signs for a user with the shared secret of the environment', async () => {
    // The gateway finds the org of a token by its org_domain.
    const userEmail = 'ada@example.com';
    await world.gateway.call('POST', '/api/orgs/default/members', { sub: userEmail, role: 'member' });
    const printed = await world.typescript(
      `
      import { callAgent } from 'rialto/client';

      console.log(await callAgent(
        'https://analytics.example.com',
        'Who asks?',
        { userEmail: '${userEmail}', orgDomain: 'default' },
      ));
    `,
      { A2A_SECRET: testSecret },
    );
    expect(printed).toBe('Who asks?\n');
    const { items } = (await world.gateway.call('GET', '/api/audit/events?type=task_submit&limit=1')).body;
    expect(items[0].principal).toMatchObject({ id: userEmail });
  });
});
