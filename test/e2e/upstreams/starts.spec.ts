import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Metrics } from '../../../src/platform/telemetry/metrics.js';
import { connectAgent, message, poster, unregisterAll } from '../../support/clients/a2e.js';
import { eventually } from '../../support/gateway/eventually.js';
import { connectSdk } from '../../support/clients/mcp-clients.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

const script = join(process.cwd(), 'test', 'support', 'stubs', 'stdio-upstream.mjs');

describe('(E13) the number of starts of the program of an MCP server', () => {
  let gateway: TestGateway;
  let folder: string;
  let starts: string;
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rialto-starts-'));
    starts = join(folder, 'starts');
    writeFileSync(starts, '');
  });
  afterEach(async () => {
    await unregisterAll(gateway);
    await eventually(running, (pids) => pids.length === 0);
    rmSync(folder, { recursive: true });
  });
  afterAll(() => gateway.close());

  const { say } = poster(() => gateway);
  const started = () => readFileSync(starts, 'utf8').split('\n').filter(Boolean).map(Number);
  const running = () => started().filter(isAlive);
  /**
   * Waits until each program was read twice: for its registration, and some time after its connection opened. A program
   * is in use while it is read.
   */
  const allRead = async () => {
    const reads = () => readFileSync(join(folder, 'reads'), 'utf8').split('\n').filter(Boolean).map(Number);
    const isReadTwice = (pid: number) => reads().filter((read) => read === pid).length >= 2;
    await eventually(started, (pids) => pids.every(isReadTwice));
  };
  const program = (env: object = {}) => ({
    command: process.execPath,
    args: [script],
    env: { STARTS: starts, READS: join(folder, 'reads'), ...env },
  });
  /** Renames the members as A2E does. */
  const asMessage = ({ command, ...others }: ReturnType<typeof program>) => ({ cmd: command, ...others });
  const pidOf = async (server: string, at = gateway) => {
    const { result } = await at.rpc('tools/call', { name: `${server}__environment`, arguments: {} });
    return JSON.parse(result.content[0].text).pid as number;
  };

  it('ends a program that is only subscribed to for a call, the least recently used one first (E3)', async () => {
    const subscriber = await connectSdk(`${gateway.url}/mcp`, gateway.token, 'legacy');
    const register = async (id: string, env: object = {}) => {
      const { status } = await gateway.call('POST', '/api/mcp/servers', { id, ...program(env), timeoutMs: 5_000 });
      expect(status).toBe(201);
    };
    const pids: number[] = [];
    for (let n = 0; n < 5; n++) {
      await register(`s${n}`, { RESOURCE: `note://s${n}` });
      await subscriber.client.subscribeResource({ uri: `note://s${n}` });
      pids.push(await pidOf(`s${n}`));
    }
    await allRead();
    await register('last');
    const last = await pidOf('last');
    await eventually(running, (alive) => !alive.includes(pids[0]!));
    expect(running()).toEqual(expect.arrayContaining([...pids.slice(1), last]));
    await subscriber.close();
    for (const id of ['s0', 's1', 's2', 's3', 's4', 'last']) await gateway.call('DELETE', `/api/mcp/servers/${id}`);
  });

  it('is one for a registration by A2E and the first call, also when the program does not end on request', async () => {
    const stubborn = { IGNORES_SIGTERM: '1', OUTLIVES_INPUT: '1' };
    for (const [id, env] of Object.entries({ mild: {}, stubborn })) {
      const before = started().length;
      const { server } = await say('mcp/server/register/req', { server_id: id, ...asMessage(program(env)) });
      expect(server.status).toBe('ready');
      const pid = await pidOf(id);
      expect(started().slice(before)).toEqual([pid]);
    }
  });

  it('is one for a registration by REST and the first call, and one more for a refresh', async () => {
    const { status, body } = await gateway.call('POST', '/api/mcp/servers', { id: 'own', ...program() });
    expect([status, body.status]).toEqual([201, 'ready']);
    const first = await pidOf('own');
    expect(started()).toEqual([first]);
    expect((await gateway.call('POST', '/api/mcp/servers/own/refresh')).status).toBe(200);
    const second = await pidOf('own');
    expect(started()).toEqual([first, second]);
    expect((await gateway.call('POST', '/api/mcp/servers/own/approve', {})).status).toBe(200);
    expect(await pidOf('own')).toBe(second);
    expect(started()).toEqual([first, second]);
  });

  it('is one for other arguments, and the program with the old ones ends', async () => {
    await gateway.call('POST', '/api/mcp/servers', { id: 'own', ...program() });
    const old = await pidOf('own');
    expect((await gateway.call('PATCH', '/api/mcp/servers/own', { args: [script, 'new'] })).status).toBe(200);
    const next = await pidOf('own');
    expect(started()).toEqual([old, next]);
    await eventually(running, (pids) => pids.length === 1 && pids[0] === next);
    const refused = await gateway.call('PATCH', '/api/mcp/servers/own', { args: ['-e', 'process.exit(3)'] });
    expect(refused.status).toBe(502);
    expect(await pidOf('own')).toBe(next);
  });

  it('leaves no program of a failed registration, which uses no slot', async () => {
    for (const env of [{ VERSION: '1999-01-01' }, { VERSION: '1999-01-01', OUTLIVES_INPUT: '1' }]) {
      const reply = await say('mcp/server/register/req', { server_id: 'odd', ...asMessage(program(env)) });
      expect(reply.ok).toBe(false);
    }
    expect(started().length).toBeGreaterThan(0);
    await eventually(running, (pids) => pids.length === 0);
    // Two requests with one id at the same time: the later one finds the id taken when its program has already started.
    const twice = [1, 2].map(() => gateway.call('POST', '/api/mcp/servers', { id: 'own', ...program() }));
    expect((await Promise.all(twice)).map(({ status }) => status).sort()).toEqual([201, 409]);
    const pid = await pidOf('own');
    await eventually(running, (pids) => pids.length === 1 && pids[0] === pid);
  });

  it('keeps no program of an agent that disconnects while it registers, unless it is registered by then', async () => {
    const agent = await connectAgent(gateway);
    agent.send(message('mcp/server/register/req', { server_id: 'own', ...asMessage(program({ SLOW_LISTS: folder })) }));
    await eventually(started, (pids) => pids.length === 1);
    await eventually(
      () => existsSync(join(folder, 'asked')),
      (is) => is,
    );
    agent.socket.terminate();
    // The other end notices it later.
    await eventually(
      async () => (await gateway.gateway.get(Metrics).streams.get()).values[0]!.value,
      (streams) => streams === 0,
    );
    writeFileSync(join(folder, 'answer'), '');
    await eventually(running, (pids) => pids.length === 0);
    expect((await gateway.call('GET', '/api/mcp/servers/own')).status).toBe(404);
    expect(started()).toHaveLength(1);
  });

  it('makes room like a call: of six registered programs five run', async () => {
    const register = (id: string) => gateway.call('POST', '/api/mcp/servers', { id, ...program() });
    for (let n = 0; n < 5; n++) await register(`p${n}`);
    await allRead();
    await register('last');
    await eventually(running, (pids) => pids.length === 5);
    expect(running()).toEqual(started().slice(1));
  });

  it('is one in the process that reads a declared server', async () => {
    const file = join(folder, 'mcp.config.json');
    writeFileSync(file, JSON.stringify({ mcpServers: { own: program() } }));
    const other = await startTestGateway({ RIALTO_MCP_CONFIG_FILE: file });
    try {
      await eventually(
        () => other.rpc('tools/list'),
        ({ result }) => result.tools.some(({ name }: any) => name === 'own__environment'),
      );
      const pid = await pidOf('own', other);
      expect(started()).toEqual([pid]);
    } finally {
      await other.close();
    }
  });
});

function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}
