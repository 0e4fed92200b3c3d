import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../../support/gateway/eventually.js';
import { connectSdk } from '../../support/clients/mcp-clients.js';
import { eventsIn } from '../../support/clients/strict-http.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

const script = join(process.cwd(), 'test', 'support', 'stubs', 'stdio-upstream.mjs');

describe('MCP servers that are programs', () => {
  let gateway: TestGateway;
  beforeAll(async () => void (gateway = await startTestGateway()));
  afterEach(async () => {
    const { body } = await gateway.call('GET', '/api/mcp/servers');
    for (const { id } of body.items) await gateway.call('DELETE', `/api/mcp/servers/${id}`);
  });
  afterAll(() => gateway.close());

  const register = (more: object = {}, at = gateway) =>
    at.call('POST', '/api/mcp/servers', { id: 'own', command: process.execPath, args: [script], ...more });
  const call = (name: string, args: object = {}, at = gateway) =>
    at.rpc('tools/call', { name: `own__${name}`, arguments: args });
  const textOf = async (name: string, args: object = {}, at = gateway) =>
    (await call(name, args, at)).result.content[0].text as string;
  const jsonOf = async (name: string, at = gateway) => JSON.parse(await textOf(name, {}, at));
  const isAlive = (pid: number): boolean => {
    try {
      process.kill(pid, 0);
      return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
    } catch {
      return false;
    }
  };
  const until = (check: () => boolean) => eventually(check, Boolean);
  const gone = (pid: number) => until(() => !isAlive(pid));

  it('AE-16 AE-17 one starts with its own environment, folder and arguments, not those of the gateway', async () => {
    process.env.CANARY_OF_THE_GATEWAY = 'x';
    const { status, body } = await register({ args: [script, 'one', 'two three'], env: { TOKEN: 'canary-env' } });
    delete process.env.CANARY_OF_THE_GATEWAY;
    expect([status, body]).toEqual([
      201,
      expect.objectContaining({
        transport: 'stdio',
        url: null,
        command: process.execPath,
        env: ['TOKEN'],
        headers: [],
      }),
    ]);
    expect(JSON.stringify(body)).not.toContain('canary-env');
    const { env, cwd, args } = await jsonOf('environment');
    expect(args).toEqual(['one', 'two three']);
    expect(Object.keys(env).sort()).toEqual(['HOME', 'LANG', 'PATH', 'TOKEN', 'XDG_CACHE_HOME', 'npm_config_cache']);
    // The program returned the value that it received; only that value is redacted.
    expect([env.TOKEN, env.HOME]).toEqual(['[redacted]', cwd]);
    const folder = mkdtempSync(join(tmpdir(), 'rialto-cwd-'));
    const change = (to: object) => gateway.call('PATCH', '/api/mcp/servers/own', to);
    expect((await change({ url: 'http://127.0.0.1:1/mcp' })).status).toBe(400);
    expect((await change({ transport: 'sse' })).status).toBe(400);
    expect((await change({ cwd: folder, env: {} })).status).toBe(200);
    const moved = await jsonOf('environment');
    expect([moved.cwd, moved.env.TOKEN]).toEqual([folder, undefined]);
    await until(() => !existsSync(cwd));
    expect(JSON.stringify(await gateway.sql('select * from mcp_servers'))).not.toContain('canary-env');
  });

  it('X2.2 one reads no memory or environment of the gateway or another program, and has no privilege', async () => {
    await register();
    await register({ id: 'other', env: { TOKEN: 'canary-of-the-other' } });
    const other = JSON.parse(
      (await gateway.rpc('tools/call', { name: 'other__environment', arguments: {} })).result.content[0].text,
    );
    const pids = [process.pid, other.pid];
    const { seen, status, limits } = JSON.parse(await textOf('spy', { pids }));
    const denied = ['environ', 'mem', 'maps'].flatMap((name) => pids.map((pid) => [`${name} of ${pid}`, 'EACCES']));
    expect(seen).toEqual(Object.fromEntries(denied));
    const none = '0'.repeat(16);
    expect(status).toMatchObject({ NoNewPrivs: '1', CapEff: none, CapPrm: none, CapBnd: none });
    const limitOf = (name: string) => new RegExp(`^Max ${name} +(\\S+)`, 'm').exec(limits)?.[1];
    const names = ['cpu time', 'file size', 'data size', 'core file size', 'open files'];
    expect(names.map(limitOf)).toEqual(['3600', '1073741824', '4294967296', '0', '1024']);
  });

  it('X2.2 the gateway shows none of its variables in its process environment, but still has them', async () => {
    const one = gateway.beside({ RIALTO_ROLE: 'api', CANARY_OF_A_SECRET: 'canary-value' });
    await one.ready;
    const shown = readFileSync(`/proc/${one.child.pid}/environ`);
    expect([shown.length > 100, shown.every((byte) => byte === 0)]).toEqual([true, true]);
    one.child.kill('SIGTERM');
    expect((await one.ended).code).toBe(0);
  });

  it.each(['LD_PRELOAD', 'LD_LIBRARY_PATH', 'GCONV_PATH'])(
    'X2.2 no variable loads code into the program that isolates it: %s',
    async (name) => {
      expect(await register({ env: { [name]: '/tmp/evil.so' } })).toMatchObject({
        status: 422,
        body: { detail: expect.stringContaining(name) },
      });
    },
  );

  (process.getuid?.() === 0 ? it : it.skip)(
    'X2.2 one runs as the user that the operator names, where the gateway may choose',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'rialto-own-user-'));
      chmodSync(folder, 0o755);
      const [program, copied] = [join(folder, 'node'), join(folder, 'server.mjs')];
      copyFileSync(process.execPath, program);
      copyFileSync(script, copied);
      const env = { RIALTO_STDIO_USER: '65533:65532', RIALTO_STDIO_ISOLATION: 'required' };
      const strict = await startTestGateway(env);
      try {
        expect(await register({ command: program, args: [copied] }, strict)).toMatchObject({ status: 201 });
        const { seen, status } = JSON.parse(await textOf('spy', {}, strict));
        expect(Object.values(seen)).toEqual(['EACCES', 'EACCES', 'EACCES']);
        const four = (id: string) => Array(4).fill(id).join('\t');
        expect(status).toMatchObject({
          Uid: four('65533'),
          Gid: four('65532'),
          Groups: expect.stringMatching(/^\s*$/),
        });
        const { cwd, env: its } = await jsonOf('environment', strict);
        expect([statSync(cwd).uid, statSync(its.XDG_CACHE_HOME).uid]).toEqual([65_533, 65_533]);
      } finally {
        await strict.close();
        rmSync(folder, { recursive: true });
      }
    },
  );

  it('one that leaves a process that writes in its folder ends like any other', async () => {
    await register();
    expect(await textOf('haunt')).toBe('haunted');
    expect((await gateway.call('DELETE', '/api/mcp/servers/own')).status).toBe(204);
    expect((await register()).status).toBe(201);
    expect(await textOf('echo', { text: 'still here' })).toBe('still here');
  });

  it('has its own download folder, which stays between starts and is removed with it', async () => {
    await register();
    await register({ id: 'other' });
    const { env } = await jsonOf('environment');
    writeFileSync(join(env.XDG_CACHE_HOME, 'package'), '');
    expect(env.npm_config_cache).toBe(join(env.XDG_CACHE_HOME, 'npm'));
    await call('crash');
    const again = await eventually(
      () => call('environment'),
      ({ result }) => result !== undefined,
    );
    expect(JSON.parse(again.result.content[0].text).env.XDG_CACHE_HOME).toBe(env.XDG_CACHE_HOME);
    expect(existsSync(join(env.XDG_CACHE_HOME, 'package'))).toBe(true);
    const { result } = await gateway.rpc('tools/call', { name: 'other__environment', arguments: {} });
    const other = JSON.parse(result.content[0].text).env.XDG_CACHE_HOME;
    expect(other).not.toBe(env.XDG_CACHE_HOME);
    await gateway.call('DELETE', '/api/mcp/servers/own');
    await eventually(
      () => existsSync(env.XDG_CACHE_HOME),
      (is) => !is,
    );
    expect(existsSync(other)).toBe(true);
  });

  it('is not started for an id that is taken', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rialto-taken-'));
    await register();
    const started = join(folder, 'started');
    const taken = await register({ args: ['-e', `require('node:fs').writeFileSync(${JSON.stringify(started)}, '')`] });
    expect([taken.status, taken.body.code]).toEqual([409, 'slug_taken']);
    expect(existsSync(started)).toBe(false);
  });

  it.each([{ result: 'text' }, { result: null }, {}])(
    'AE-32 an answer such as %j, which is not a response, ends only its own call, at once',
    async (answer) => {
      await register({ timeoutMs: 60_000 });
      const sleeping = call('sleep');
      const { error } = await call('malformed', answer);
      expect(error).toMatchObject({ code: -32_203, data: { code: 'remote_invalid_response' } });
      expect(await textOf('echo', { text: 'fine' })).toBe('fine');
      await gateway.call('DELETE', '/api/mcp/servers/own');
      expect((await sleeping).error.data.code).toBe('unavailable');
    },
  );

  it('AE-43 lines that arrive split, merged or between noise are parsed, and part of stderr is logged', async () => {
    await register();
    expect(await textOf('split')).toBe('ä'.repeat(10));
    expect(await textOf('nonsense')).toBe('after all');
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => textOf('echo', { text: n })));
    expect(answers).toEqual(Array.from({ length: 100 }, (_, n) => String(n)));
    expect(await textOf('mutter')).toBe('muttered');
    const notes = await eventually(
      () => gateway.log.filter((line) => line.includes('an MCP server says')),
      ({ length }) => length > 0,
    );
    expect(notes.filter((line) => line.includes('line ')).length).toBeLessThan(200);
    expect(gateway.log.join()).not.toContain('canary-stderr');
  });

  it('AE-20 AE-31 one that dies ends its calls at once, and is restarted automatically', async () => {
    await register();
    const { pid } = await jsonOf('environment');
    const [sleeping] = await Promise.all([call('sleep'), call('crash')]);
    expect(sleeping.error.data.code).toBe('remote_transport');
    expect((await gateway.rpc('tools/list')).result.tools.map(({ name }: any) => name)).toContain('own__echo');
    await eventually(
      () => gateway.call('GET', '/api/mcp/servers/own'),
      ({ body }) => body.status === 'ready',
    );
    const next = await jsonOf('environment');
    expect(next.pid).not.toBe(pid);
    await gone(pid);
  });

  it('AE-32 a line that is too long ends its own call, not the program (C31)', async () => {
    await register();
    const { pid } = await jsonOf('environment');
    const { error } = await call('flood');
    expect(error).toMatchObject({ code: -32_203, message: expect.stringContaining('more than 10485760 bytes') });
    expect(await textOf('echo', { text: 'again' })).toBe('again');
    const { result } = await call('picture', { letters: 1_500_000 });
    expect(result.content[0].data).toHaveLength(1_500_000);
    expect((await jsonOf('environment')).pid).toBe(pid);
  });

  it.each([{}, { env: { IGNORES_SIGTERM: '1' } }])(
    'AE-44 after it is unregistered, it ends with all its child processes: %j',
    async (more) => {
      await register(more);
      const { pid, child } = await jsonOf('parent');
      expect([isAlive(pid), isAlive(child)]).toEqual([true, true]);
      expect((await gateway.call('DELETE', '/api/mcp/servers/own')).status).toBe(204);
      await Promise.all([gone(pid), gone(child)]);
    },
  );

  it('AE-55 it ends with the gateway, after a kill or a stop, and calls in progress are answered', async () => {
    // Registered before those processes start, so that they know it from their start and not from a notice.
    await register();
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const other = gateway.beside({ RIALTO_ROLE: 'api' });
      const at = { ...gateway, url: await other.ready };
      const rpc = async (name: string) => {
        const response = await fetch(`${at.url}/mcp`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${gateway.token}`,
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
          },
          body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } }),
        });
        // A slow answer is a stream of events.
        const isStream = response.headers.get('content-type')!.startsWith('text/event-stream');
        return isStream ? eventsIn(await response.text()).at(-1) : ((await response.json()) as any);
      };
      const { pid, cwd } = JSON.parse((await rpc('own__environment')).result.content[0].text);
      expect(isAlive(pid)).toBe(true);
      const napping = rpc('own__nap').catch(() => undefined);
      await eventually(
        () => existsSync(join(cwd, 'napping')),
        (does) => does,
      );
      other.child.kill(signal);
      if (signal === 'SIGTERM') {
        await eventually(
          () => fetch(`${at.url}/livez`).catch(() => undefined),
          (answer) => answer === undefined,
        );
        writeFileSync(join(cwd, 'woken'), '');
      }
      expect((await napping)?.result.content[0].text).toBe(signal === 'SIGTERM' ? 'rested' : undefined);
      expect((await other.ended).code).toBe(signal === 'SIGTERM' ? 0 : null);
      await gone(pid);
    }
  });

  it('AE-40 one with an older revision is called with that revision', async () => {
    const { body } = await register({ env: { VERSION: '2024-11-05' } });
    expect(body.mcpVersion).toBe('2024-11-05');
    expect(await textOf('echo', { text: 'x' })).toBe('x');
    expect((await register({ id: 'odd', env: { VERSION: '1999-01-01' } })).status).toBe(502);
  });

  it('AE-64 AE-66 its unknown requests, and requests that no client can answer, are refused', async () => {
    await register();
    const codes = { 'foo/bar': -32_601, 'sampling/createMessage': -32_000, 'roots/list': -32_000 };
    for (const [method, code] of Object.entries(codes))
      expect(JSON.parse(await textOf('ask', { method })).error.code).toBe(code);
  });

  it('a program that cannot be started is not registered', async () => {
    const absent = await register({ command: 'node server.js' });
    expect([absent.status, absent.body]).toEqual([
      502,
      expect.objectContaining({
        detail: 'there is no program "node server.js"',
        hint: expect.stringContaining('`args`'),
      }),
    ]);
    const ends = await register({ args: ['-e', 'process.exit(3)'] });
    expect([ends.status, ends.body.hint]).toEqual([502, expect.stringContaining('log of the gateway')]);
    const web = await gateway.call('POST', '/api/mcp/servers', { id: 'web', url: 'http://127.0.0.1:1/mcp' });
    const refused = 'the MCP server could not be reached: the connection was refused';
    expect(web).toMatchObject({ status: 502, body: { detail: refused, reason: 'refused', server: 'web' } });
    expect((await register({ url: 'http://127.0.0.1:1/mcp' })).status).toBe(400);
    expect((await register({ transport: 'sse' })).status).toBe(400);
    expect((await register({ headers: { X: 'y' } })).status).toBe(400);
    expect((await gateway.call('POST', '/api/mcp/servers', { transport: 'stdio' })).status).toBe(400);
    expect((await register({ env: { 'not-a-name': 'x' } })).status).toBe(400);
  });

  it('with a catalogue of the operator, only its entries are started, exactly as defined there', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'rialto-config-')), 'rialto.config.json');
    const files = {
      name: 'files',
      command: process.execPath,
      args: [script, 'fixed'],
      env: ['TOKEN'],
      limits: { files: 64 },
    };
    writeFileSync(file, JSON.stringify({ stdioCommands: [files] }));
    const strict = await startTestGateway({ RIALTO_CONFIG_FILE: file });
    try {
      expect((await register({ command: 'files', args: undefined, env: { OTHER: 'x' } }, strict)).status).toBe(422);
      expect((await register({ command: 'files' }, strict)).status).toBe(422);
      expect((await register({ command: 'files', args: undefined, env: { TOKEN: 't' } }, strict)).status).toBe(201);
      const { args, env } = await jsonOf('environment', strict);
      expect([args, env.TOKEN]).toEqual([['fixed'], 't']);
    } finally {
      await strict.close();
    }
  });

  it('an org runs at most five, and the least recently used one makes room', async () => {
    for (let n = 0; n < 6; n++) expect(await register({ id: `p${n}` })).toMatchObject({ status: 201 });
    const pids: number[] = [];
    for (let n = 0; n < 6; n++) {
      const answer = await gateway.rpc('tools/call', { name: `p${n}__environment`, arguments: {} });
      expect(answer).toMatchObject({ result: { content: [{ type: 'text' }] } });
      pids.push(JSON.parse(answer.result.content[0].text).pid);
    }
    await gone(pids[0]!);
    expect(pids.slice(1).map(isAlive)).toEqual([true, true, true, true, true]);
  });

  it('calls above the limit of an org wait for a slot, and no call in progress loses its own (E3)', async () => {
    const ids = Array.from({ length: 8 }, (_, n) => `p${n}`);
    for (const id of ids) expect(await register({ id })).toMatchObject({ status: 201 });
    const answers = await Promise.all(
      [...ids, ...ids].map((id) => gateway.rpc('tools/call', { name: `${id}__rest`, arguments: { ms: 300 } })),
    );
    for (const answer of answers) expect(answer).toMatchObject({ result: { content: [{ text: 'rested' }] } });
    expect((await gateway.call('PATCH', '/api/mcp/servers/p0', { timeoutMs: 1_000 })).status).toBe(200);
    const [folders, naps]: [string[], Promise<any>[]] = [[], []];
    const other = await gateway.tokenOf('default', 'colleague', 'admin');
    for (const id of ids.slice(1, 6)) {
      const token = naps.length < 4 ? gateway.token : other; // one caller may use at most four at once
      const { result } = await gateway.rpc('tools/call', { name: `${id}__environment`, arguments: {} }, token);
      folders.push(JSON.parse(result.content[0].text).cwd);
      naps.push(gateway.rpc('tools/call', { name: `${id}__nap`, arguments: {} }, token));
    }
    await until(() => folders.every((folder) => existsSync(join(folder, 'napping'))));
    const rest = { name: 'p0__rest', arguments: { ms: 1 } };
    for (const { error } of [await gateway.rpc('tools/call', rest), await gateway.rpc('tools/call', rest, other)])
      expect(error?.data ?? error).toMatchObject({ code: 'unavailable', retryAfterSeconds: 5 });
    for (const folder of folders) writeFileSync(join(folder, 'woken'), '');
    for (const nap of naps) expect(await nap).toMatchObject({ result: { content: [{ text: 'rested' }] } });
  });

  it('a client that can be asked gets the questions of many programs (E2)', async () => {
    const ids = Array.from({ length: 7 }, (_, n) => `q${n}`);
    for (const id of ids) expect(await register({ id })).toMatchObject({ status: 201 });
    for (const id of ids) await gateway.rpc('tools/call', { name: `${id}__rest`, arguments: { ms: 1 } });
    const capabilities = { sampling: {} };
    const asked = await connectSdk(`${gateway.url}/mcp`, gateway.token, 'legacy', { capabilities });
    const sample = { role: 'assistant' as const, content: { type: 'text' as const, text: 'sampled' }, model: 'm' };
    asked.client.setRequestHandler('sampling/createMessage', () => sample);
    const params = { method: 'sampling/createMessage' };
    for (const id of ids) {
      const { content } = await asked.callTool({ name: `${id}__ask`, arguments: params });
      expect([id, (content as any)[0].text]).toEqual([id, expect.stringContaining('sampled')]);
    }
    const all = await Promise.all(ids.map((id) => asked.callTool({ name: `${id}__ask`, arguments: params })));
    for (const { content } of all) expect((content as any)[0].text).toContain('sampled');
    await asked.close();
  });
});
