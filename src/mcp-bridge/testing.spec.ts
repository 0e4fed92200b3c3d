import { Client } from '@modelcontextprotocol/client';
import { InMemoryTransport, McpServer } from '@modelcontextprotocol/server';
import { startStubAgent, type StubAgent } from '../../test/support/stubs/stub-agent.js';
import { data, slow } from '../../test/support/stubs/stub-behaviours.js';
import {
  buildA2ASkillTool,
  createInMemoryVerbBus,
  registerA2AAgentsAsMcpTools,
  type Fetcher,
  type VerbEvent,
} from './testing.js';

const agentRow = { id: 'agent-1', orgId: 'org-1', agentUrl: 'https://ops.example.com/a2a' };
const card = { name: 'Vercel Ops', url: agentRow.agentUrl };
const skill = {
  id: 'deploy',
  inputSchema: { type: 'object', properties: { projectId: { type: 'string' } }, required: ['projectId'] },
};
const artifactOf = (value: unknown) => ({
  kind: 'task',
  id: 't1',
  contextId: 'c1',
  status: { state: 'completed' },
  artifacts: [{ artifactId: 'a1', parts: [{ kind: 'data', data: value }] }],
});
const answering =
  (result: unknown): Fetcher =>
  async () => ({ status: 200, bodyText: JSON.stringify({ jsonrpc: '2.0', id: 1, result }) });

function watched() {
  const verbBus = createInMemoryVerbBus();
  const events: VerbEvent[] = [];
  verbBus.subscribe((event) => void events.push(event));
  return { verbBus, events };
}

describe('rialto/testing', () => {
  it('K9 a skill without a schema takes a message and sends it as text', async () => {
    const sent: { params: { message: { parts: object[] } } }[] = [];
    const fetcher: Fetcher = async (url, { body }) => {
      sent.push(JSON.parse(body) as (typeof sent)[number]);
      return answering(artifactOf('ok'))(url, {} as never);
    };
    const common = { agentRow, card, verbBus: createInMemoryVerbBus(), fetcher };
    const tool = buildA2ASkillTool({ ...common, skill: { id: 'chat' } });
    expect(tool.inputSchema).toMatchObject({ properties: { message: { type: 'string' } }, additionalProperties: true });
    await tool.handler({ message: 'hello' });
    await buildA2ASkillTool({ ...common, skill }).handler({ projectId: 'p1' });
    expect(sent.map(({ params }) => params.message.parts)).toEqual([
      [{ kind: 'text', text: 'hello' }],
      [{ kind: 'data', data: { projectId: 'p1' } }],
    ]);
  });

  it('RE-50, RE-51, RE-52 builds a tool that calls through the fetcher and publishes events on the bus', async () => {
    const { verbBus, events } = watched();
    const sent: { url: string; body: object }[] = [];
    const fetcher: Fetcher = async (url, { body }) => {
      sent.push({ url, body: JSON.parse(body) as object });
      return answering(artifactOf({ url: 'https://p1.example.com' }))(url, {} as never);
    };
    const tool = buildA2ASkillTool({ agentRow, card, skill, verbBus, fetcher });

    expect(tool.name).toBe('vercel_ops.deploy');
    await expect(tool.handler({ projectId: 'p1' })).resolves.toEqual({ url: 'https://p1.example.com' });
    expect(sent).toHaveLength(1);
    expect(sent[0]!.url).toBe(agentRow.agentUrl);
    expect(sent[0]!.body).toMatchObject({
      jsonrpc: '2.0',
      method: 'message/send',
      params: { message: { skill: { skillId: 'deploy' }, parts: [{ kind: 'data', data: { projectId: 'p1' } }] } },
    });
    expect(events.map(({ phase, outcome }) => [phase, outcome])).toEqual([
      ['pre-verb', undefined],
      ['post-verb', 'completed'],
    ]);
    expect(events[1]).toMatchObject({
      verb: 'vercel_ops.deploy',
      orgId: 'org-1',
      agentCardId: 'agent-1',
      agentUrl: agentRow.agentUrl,
      skillId: 'deploy',
      args: { projectId: 'p1' },
    });
  });

  it('E8 RE-09 RE-38 names the canonical verb and the alias for a call by either name', async () => {
    const { verbBus, events } = watched();
    const tool = buildA2ASkillTool({ agentRow, card, skill, verbBus, fetcher: answering(artifactOf(1)) });
    await tool.aliasHandler({ projectId: 'p1' });
    await tool.handler({ projectId: 'p1' });
    const [verb, legacyAlias] = ['vercel_ops.deploy', 'a2a_vercel_ops_deploy'];
    expect(events.map(({ verb, legacyAlias, calledAs }) => [verb, legacyAlias, calledAs])).toEqual([
      ...Array<string[]>(2).fill([verb, legacyAlias, legacyAlias]),
      ...Array<string[]>(2).fill([verb, legacyAlias, verb]),
    ]);
  });

  it('E7 RE-35, RE-37 a refused call never reaches the fetcher; a failed call publishes both events', async () => {
    const { verbBus, events } = watched();
    let fetched = 0;
    const tool = buildA2ASkillTool({
      agentRow,
      card,
      skill,
      verbBus,
      fetcher: async () => (fetched++, { status: 500, bodyText: '' }),
    });
    const failure = { code: -32202, name: 'RemoteA2ATransportError', reason: 'remote_transport' };
    await expect(tool.handler({ projectId: 'p1' })).rejects.toMatchObject(failure);
    expect(events.map(({ phase }) => phase)).toEqual(['pre-verb', 'post-verb', 'verb-error']);
    expect(events[2]!.error).toMatchObject(failure);
    const leave = verbBus.subscribe((event) => void (event.context.denied = 'not today'));
    await expect(tool.handler({ projectId: 'p1' })).rejects.toMatchObject({
      code: -32003,
      name: 'AuthorizationError',
      message: 'not today',
    });
    leave();
    await expect(tool.handler({})).rejects.toMatchObject({ code: -32602, reason: 'invalid_params' });
    expect(fetched).toBe(1);
  });

  describe('RE-88 registerA2AAgentsAsMcpTools on the official server', () => {
    let stub: StubAgent;
    beforeEach(async () => {
      stub = await startStubAgent({ card: 'v03' });
    });
    afterEach(() => stub.close());

    async function connected(timeoutMs: number) {
      const server = new McpServer({ name: 'test', version: '1' });
      const agents = [
        { agentRow: { ...agentRow, agentUrl: stub.url }, card: { name: 'Vercel Ops', skills: [{ id: 'deploy' }] } },
      ];
      const register = () =>
        registerA2AAgentsAsMcpTools(server, { agents, verbBus: createInMemoryVerbBus(), timeoutMs });
      const first = register();
      const [near, far] = InMemoryTransport.createLinkedPair();
      await server.connect(near);
      const client = new Client({ name: 'client', version: '1' });
      await client.connect(far);
      return { client, register, first };
    }

    it('RE-88, RE-44 skips by name the second time, and calls through', async () => {
      stub.set(data({ ok: true }));
      const { client, register, first } = await connected(20_000);
      expect(first).toEqual({ registered: ['vercel_ops.deploy', 'a2a_vercel_ops_deploy'], skipped: [] });
      expect(register()).toEqual({ registered: [], skipped: ['vercel_ops.deploy', 'a2a_vercel_ops_deploy'] });
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(['vercel_ops.deploy', 'a2a_vercel_ops_deploy']);
      await expect(client.callTool({ name: 'vercel_ops.deploy', arguments: {} })).resolves.toMatchObject({
        structuredContent: { ok: true },
      });
    });

    it('E7 RE-27 RE-88 fails at timeoutMs, with code and name', async () => {
      stub.set(slow(10_000, data({}))); // shorter than the default limit
      const { client } = await connected(500);
      const started = performance.now();
      const text = '-32201 RemoteA2ATimeoutError: no answer within 500 ms';
      await expect(client.callTool({ name: 'vercel_ops.deploy', arguments: {} })).resolves.toMatchObject({
        isError: true,
        content: [{ type: 'text', text }],
        _meta: {
          'dev.rialto/error': { code: -32201, data: { name: 'RemoteA2ATimeoutError', code: 'remote_timeout' } },
        },
      });
      expect(performance.now() - started).toBeGreaterThanOrEqual(490);
    });
  });
});
