import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { TestUpstream, type UpstreamKind } from '../../support/stubs/upstream.js';

const changed = 'notifications/roots/list_changed';

describe('the roots of a client of the 2025 era', () => {
  let gateway: TestGateway;
  let other: TestGateway;
  const open: { close: () => Promise<void> }[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
    other = await startTestGateway({}, gateway);
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
    await gateway.call('DELETE', '/api/mcp/servers/own');
  });
  afterAll(async () => {
    await other.close();
    await gateway.close();
  });

  /**
   * Starts a server with its connections, and a client of the gateway that returns its roots when `answer` is called.
   */
  const start = async (kind: UpstreamKind, roots: object) => {
    const upstream = await TestUpstream.start(kind);
    const servers: Server[] = [];
    upstream.initialized = (server) => servers.push(server);
    expect((await gateway.call('POST', '/api/mcp/servers', { id: 'own', url: upstream.url })).status).toBe(201);
    const answers: ((name: string) => void)[] = [];
    const client = new Client({ name: 'c', version: '1' }, { capabilities: { roots } });
    client.setRequestHandler('roots/list', () => {
      const answer = (resolve: (result: any) => void) => (name: string) =>
        resolve({ roots: [{ uri: `file:///${name}` }] });
      return new Promise((resolve) => answers.push(answer(resolve)));
    });
    const headers = { authorization: `Bearer ${gateway.token}` };
    const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit: { headers } });
    await client.connect(transport);
    open.push(client, upstream);
    const call = () => client.callTool({ name: 'own__echo', arguments: { text: 'x' } });
    return { upstream, servers, answers, call, client, session: transport.sessionId! };
  };
  const said = (count: number) => (list: readonly unknown[]) => list.length === count;

  it('are requested when its connection opens, and sent even when its call has long ended', async () => {
    const { upstream, answers, call } = await start('websocket', {});
    const notified: string[] = [];
    upstream.initialized = async (server) => {
      const { roots } = await server.listRoots().catch(() => ({ roots: [] }));
      notified.push(...roots.map(({ uri }) => uri));
    };
    await eventually(async () => (await call()) && answers, said(1));
    await call();
    expect(notified).toEqual([]);
    answers[0]!('home');
    expect(await eventually(() => notified, said(1))).toEqual(['file:///home']);
    expect(answers).toHaveLength(1);
  });

  it('are sent again to the called servers when they change, in every process', async () => {
    const { upstream, servers, answers, call, client, session } = await start('sessions', { listChanged: true });
    expect(servers.map((server) => server.getClientCapabilities()?.roots?.listChanged)).not.toContain(true);
    const before = servers.length;
    await call();
    const [own] = servers.slice(before);
    await client.sendRootsListChanged();
    await eventually(() => upstream.told, said(1));
    const headers = { 'mcp-session-id': session };
    await other.call('POST', '/mcp', { jsonrpc: '2.0', method: changed }, gateway.token, headers);
    await eventually(() => upstream.told, said(2));
    expect(upstream.told.map(({ method }) => method)).toEqual([changed, changed]);
    const asked = own!.listRoots();
    await eventually(async () => (await call()) && answers, said(1));
    answers[0]!('moved');
    expect((await asked).roots).toEqual([{ uri: 'file:///moved' }]);
  });
});
