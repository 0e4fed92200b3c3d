import { publish } from '../support/clients/a2a.js';
import { clientKinds, connectMcp, type McpClient } from '../support/clients/mcp-clients.js';
import { startSdkAgentV1, type SdkAgent } from '../support/stubs/sdk-agents.js';
import { shipped } from '../support/checks/shipped.js';
import { TestUpstream } from '../support/stubs/upstream.js';

const gateway = shipped();

describe('the MCP door of the shipped tree', () => {
  let agent: SdkAgent;
  const servers: TestUpstream[] = [];

  beforeAll(async () => {
    agent = await startSdkAgentV1();
    await publish(gateway, { name: 'listed' });
    const registered = await gateway.call('POST', '/api/a2a/agents', { url: agent.url, slug: 'foreign' });
    expect(registered.status).toBe(201);
    for (const kind of ['sessions', 'modern'] as const) {
      const one = await TestUpstream.start(kind);
      servers.push(one);
      const { status } = await gateway.call('POST', '/api/mcp/servers', { id: kind, url: one.url });
      expect(status).toBe(201);
    }
  });
  afterAll(async () => {
    for (const kind of ['sessions', 'modern']) await gateway.call('DELETE', `/api/mcp/servers/${kind}`);
    await agent.close();
    await Promise.all(servers.map((one) => one.close()));
  });

  it('starts a program that reads neither memory nor environment of the gateway, within its limits', async () => {
    expect(await gateway.call('POST', '/api/mcp/servers', { id: 'own', command: 'spy' })).toMatchObject({
      status: 201,
    });
    const { result } = await gateway.rpc('tools/call', { name: 'own__spy', arguments: { pids: [gateway.api.pid] } });
    const { seen, status, limits } = JSON.parse(result.content[0].text);
    expect(Object.values(seen)).toEqual(['EACCES', 'EACCES', 'EACCES']);
    expect(status).toMatchObject({ NoNewPrivs: '1', CapEff: '0'.repeat(16) });
    expect(limits).toMatch(/^Max data size +2147483648 /m);
    expect(limits).toMatch(/^Max processes +200 /m);
    expect((await gateway.call('DELETE', '/api/mcp/servers/own')).status).toBe(204);
  });

  describe.each(clientKinds)('for the official client, %s', (kind) => {
    let client: McpClient;
    beforeAll(async () => void (client = await connectMcp(kind, `${gateway.url}/mcp`, gateway.token)));
    afterAll(() => client.close());

    it('lists the tools of MCP servers of both eras, the skills of an agent, and its own agents', async () => {
      const { tools } = await client.listTools();
      const names = tools.map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(['sessions__echo', 'modern__echo', 'send_to_agent']));
      expect(names.filter((name) => name.includes('foreign') && name.includes('echo'))).toHaveLength(1);
    });

    it.each(['sessions', 'modern'])('calls a tool of an MCP server of the kind %s', async (server) => {
      const reply = await client.callTool({ name: `${server}__echo`, arguments: { text: `by ${kind}` } });
      expect(reply.content).toEqual([{ type: 'text', text: `by ${kind}` }]);
    });

    it('calls a skill of an agent of the official SDK, and an agent of its own', async () => {
      const skill = await client.callTool({ name: 'foreign.echo', arguments: { number: 7 } });
      expect(skill.isError ?? false).toBe(false);
      expect(JSON.stringify(skill.structuredContent)).toContain('"number":7');
      const own = await client.callTool({
        name: 'send_to_agent',
        arguments: { agent: 'listed', message: `by ${kind}` },
      });
      expect(JSON.stringify(own.content)).toContain(`by ${kind}`);
    });
  });
});
