import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { publish, rpc, rpcStream, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { ModelServer, refuses, type Reply } from '../../support/stubs/model-server.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

const key = 'sk-canary-0123456789abcdef';
const text = (words: string) => ({ content: [{ type: 'text', text: words }] });
const never = () => new Promise(() => undefined);
const call = (name: string, args: unknown = {}) => ({ calls: [{ name, args }] });
const outcome = ({ status }: any) => [status.state, status.message?.parts[0].text, status.message?.metadata?.errorCode];

describe('an agent with a model as executor', () => {
  let gateway: TestGateway;
  let model: ModelServer;
  let upstream: TestUpstream;
  beforeAll(async () => {
    gateway = await startTestGateway();
    model = await ModelServer.start();
    upstream = await TestUpstream.start();
    upstream.add('weather', ({ city }) => text(`${String(city)}: rain`), { annotations: { readOnlyHint: true } });
    upstream.add('book', () => text('booked'));
    upstream.add('long', () => text('x'.repeat(100_000)));
    upstream.add('never', never);
    await gateway.call('POST', '/api/mcp/servers', { id: 'town', url: upstream.url });
    await agent('plain');
    await agent('tooled', { tools: ['town__*'] });
  });
  afterAll(async () => {
    await model.close();
    await upstream.close();
    await gateway.close();
  });

  const agent = (name: string, more: object = {}, about: object = {}) =>
    publish(gateway, { name, executor: { kind: 'llm', url: model.url, model: 'm', ...more }, ...about });
  const ask = async (name: string, words: string, more: Record<string, unknown> = {}, token?: string) =>
    (await rpc(gateway, 'SendMessage', { message: userMessage(words, more) }, { agent: name, token })).task;
  const functionsAt = (index: number): string[] =>
    model.requests[index]!.body.tools.map((tool: any) => tool.function.name);
  const lastOf = (index: number): any => model.requests[index]!.body.messages.at(-1);

  it('answers, and streams the answer as chunks of one artifact', async () => {
    model.script(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const content of ['Hel', 'lo', ' you']) {
        response.write(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`);
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
      response.end('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');
    });
    const params = { message: userMessage('hi') };
    const frames = await (await rpcStream(gateway, 'SendStreamingMessage', params, { agent: 'plain' })).rest();
    const chunks = frames.flatMap(({ data }) => data.result.artifactUpdate ?? []);
    expect(chunks.map(({ artifact }) => artifact.parts[0].text).join('')).toBe('Hello you');
    expect(chunks.map(({ append, lastChunk }) => [append, lastChunk])).toEqual(
      chunks.map((_, index) => [index > 0, index === chunks.length - 1]),
    );
    expect(chunks.length).toBeGreaterThan(1);
    const { status } = frames.at(-1)!.data.result.statusUpdate;
    expect(outcome({ status })).toEqual(['TASK_STATE_COMPLETED', 'Hello you', undefined]);
    expect(model.requests[0]).toMatchObject({
      url: '/v1/chat/completions',
      body: { model: 'm', stream: true, max_tokens: 4_096, messages: [{ role: 'user', content: 'hi' }] },
    });
    expect(functionsAt(0)).toEqual(['ask_user']);
    expect(model.requests[0]!.headers.authorization).toBeUndefined();
  });

  it('uses its tools with the rights of its caller, and receives their results', async () => {
    model.script(
      { text: ['Let me see.'], ...call('town__weather', { city: 'Lisbon' }) },
      call('town__absent'),
      call('town__weather', 'no JSON'),
      call('town__long'),
      { text: ['It rains.'] },
    );
    const task = await ask('tooled', 'weather?');
    expect(outcome(task)[1]).toBe('It rains.');
    expect(task.artifacts.map(({ parts }: any) => parts.map((part: any) => part.text).join(''))).toEqual(['It rains.']);
    expect(functionsAt(0)).toEqual([
      'town__book',
      'town__echo',
      'town__long',
      'town__never',
      'town__weather',
      'ask_user',
    ]);
    expect(lastOf(1)).toEqual({ role: 'tool', tool_call_id: 'call-0', content: 'Lisbon: rain' });
    expect([lastOf(2).content, lastOf(3).content]).toEqual([
      'Error: there is no such tool',
      'Error: the arguments are not a JSON object',
    ]);
    expect(lastOf(4).content.length).toBeLessThan(20_010);
  });

  it('(N14) RY-25: followers of the run see each step by its name, without its content', async () => {
    model.script(call('town__weather', { city: 'Oslo' }), call('town__weather', 'no JSON'), { text: ['It snows.'] });
    const { id } = await ask('tooled', 'weather?');
    const stream = await fetch(`${gateway.url}/a2a/tasks/${id}/events`, {
      headers: { authorization: `Bearer ${gateway.token}` },
    });
    const lines = [...(await stream.text()).matchAll(/^data: (\{"run_id.*)$/gm)].map(([, line]) => line!);
    const events = lines.map((line) => JSON.parse(line));
    const steps = ['turn_started', 'llm_called', 'tool_returned', 'llm_called', 'tool_failed', 'llm_called'];
    expect(events.flatMap(({ event }) => event ?? [])).toEqual(steps);
    const progress = events.map((event) => event.progress);
    expect(progress).toEqual([...new Set(progress)].sort((a, b) => a - b));
    expect(lines.slice(0, -1).join()).not.toMatch(/Oslo|rain|JSON/);
  });

  it('has only the rights of its caller: tools that a policy denies are neither listed nor called', async () => {
    const policies = [
      `forbid(principal == User::"eve", action == Action::"mcp_call", resource == Tool::"town__book");`,
      `forbid(principal == User::"eve", action == Action::"mcp_discover", resource == McpServer::"town");`,
    ];
    const [first, second] = policies;
    const eve = await gateway.tokenOf('default', 'eve');
    const { body } = await gateway.call('POST', '/api/policies', { name: 'no booking', text: first });
    model.script(call('town__book'), { text: ['I may not.'] });
    const before = upstream.calls.length;
    expect(outcome(await ask('tooled', 'book', {}, eve))[1]).toBe('I may not.');
    expect(lastOf(1).content).toBe('Error: forbidden by policy "no booking"');
    expect(upstream.calls).toHaveLength(before);
    const { body: hidden } = await gateway.call('POST', '/api/policies', { name: 'nothing there', text: second });
    model.script({ text: ['Alone.'] });
    await ask('tooled', 'book', {}, eve);
    expect(functionsAt(0)).toEqual(['ask_user']);
    for (const { id } of [body, hidden]) await gateway.call('DELETE', `/api/policies/${id}`);
  });

  it('never calls itself', async () => {
    await agent('loop', { tools: ['send_to_agent'] });
    model.script(call('send_to_agent', { agent: 'loop', message: 'you do it' }), { text: ['Then I do.'] });
    expect(outcome(await ask('loop', 'do it'))[1]).toBe('Then I do.');
    expect(functionsAt(0)).toEqual(['send_to_agent', 'ask_user']);
    expect(lastOf(1).content).toContain('already at work behind this call');
    expect(model.requests).toHaveLength(2);
  });

  it('asks its caller, and continues with the answer', async () => {
    model.script(
      {
        calls: [
          ...call('town__weather', { city: 'Rome' }).calls,
          ...call('ask_user', { question: 'Which day?' }).calls,
        ],
      },
      { text: ['Sunday it is.'] },
    );
    const asked = await ask('tooled', 'weather in Rome');
    expect(outcome(asked)).toEqual(['TASK_STATE_INPUT_REQUIRED', 'Which day?', undefined]);
    const done = await ask('tooled', 'Sunday', { taskId: asked.id });
    expect(outcome(done)[1]).toBe('Sunday it is.');
    expect(model.requests[1]!.body.messages.map(({ role, content }: any) => [role, content])).toEqual([
      ['user', 'weather in Rome'],
      ['assistant', null],
      ['tool', 'Rome: rain'],
      ['tool', 'Sunday'],
    ]);
  });

  it('knows the messages of its context, and its own name', async () => {
    await agent('memory', { system: 'You remember.' });
    model.script({ text: ['Hello Ada.'] }, { text: ['Ada.'] });
    const { contextId } = await ask('memory', 'I am Ada');
    await ask('memory', 'who am I?', { contextId });
    expect(model.requests[1]!.body.messages).toEqual([
      { role: 'system', content: 'You remember.' },
      { role: 'user', content: 'I am Ada' },
      { role: 'assistant', content: 'Hello Ada.' },
      { role: 'user', content: 'who am I?' },
    ]);
  });

  it.each<[string, object, Reply[], string, string]>([
    ['steps', { maxSteps: 2 }, [call('town__weather'), call('town__weather')], 'maxSteps is 2', 'unprocessable'],
    [
      'tokens that the server counts',
      { maxTokens: 10 },
      [{ ...call('town__weather'), tokens: 10 }],
      'maxTokens is 10',
      'too_large',
    ],
    ['tokens of one answer', { maxTokens: 10 }, [{ text: ['half'], finish: 'length' }], 'maxTokens is 10', 'too_large'],
    ['time, while the model thinks', { maxSeconds: 1 }, [never], 'maxSeconds is 1', 'remote_timeout'],
    ['time, while a tool works', { maxSeconds: 1 }, [call('town__never')], 'maxSeconds is 1', 'remote_timeout'],
  ])('stops at its limit of %s', async (_what, limits, replies, words, code) => {
    await gateway.call('PATCH', '/api/a2a/published/tooled', {
      executor: { kind: 'llm', url: model.url, model: 'm', tools: ['town__*'], ...limits },
    });
    model.script(...replies);
    expect(outcome(await ask('tooled', 'go'))).toEqual(['TASK_STATE_FAILED', expect.stringContaining(words), code]);
    expect(model.requests).toHaveLength(replies.length);
    await gateway.call('PATCH', '/api/a2a/published/tooled', {
      executor: { kind: 'llm', url: model.url, model: 'm', tools: ['town__*'] },
    });
  });

  const chunk = (delta: object) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`;
  const raw =
    (body: string, type = 'text/event-stream'): Reply =>
    (response) =>
      response.writeHead(200, { 'content-type': type }).end(body);
  it.each<[string, Reply[], string, RegExp]>([
    ['a key that is refused', [refuses(401, `no key ${key}`)], 'remote_error', /401.*key/],
    ['an unknown model', [refuses(404, 'no such model')], 'remote_error', /404/],
    [
      'too much to do for longer than there is time',
      [refuses(429, 'busy', { 'retry-after': '600' })],
      'rate_limited',
      /no more/,
    ],
    ['an invalid stream', [raw('data: {broken\n\n')], 'remote_invalid_response', /could not be read/],
    ['a stream that breaks', [raw(chunk({ content: 'I ' }))], 'remote_transport', /no complete answer/],
    [
      'an error in the stream',
      [raw(`${chunk({ content: 'I ' })}data: {"error":{"message":"x"}}\n\n`)],
      'remote_error',
      /error/,
    ],
    ['something else', [raw('{"hello": 1}', 'application/json')], 'remote_invalid_response', /choices/],
    ['nothing', [{ text: [] }], 'remote_invalid_response', /empty answer/],
  ])('fails with its reason: %s', async (_what, replies, code, words) => {
    model.script(...replies);
    expect(outcome(await ask('plain', 'go'))).toEqual(['TASK_STATE_FAILED', expect.stringMatching(words), code]);
    expect(model.requests).toHaveLength(replies.length);
  });

  it('retries a busy server, after the time that the server names', async () => {
    model.script(refuses(503, 'loading'), refuses(429, 'busy', { 'retry-after': '1' }), { text: ['Here.'] });
    expect(outcome(await ask('plain', 'go'))[1]).toBe('Here.');
    expect(model.requests).toHaveLength(3);
  });

  it('works with servers that do not stream, have no tools, or name limits differently', async () => {
    model.script(
      refuses(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
      refuses(400, 'm does not support tools'),
      refuses(400, 'stream_options is unknown'),
      refuses(422, 'streaming is not supported'),
      { text: ['Plain.'] },
    );
    expect(outcome(await ask('plain', 'go'))[1]).toBe('Plain.');
    expect(Object.keys(model.requests[4]!.body).sort()).toEqual(['max_completion_tokens', 'messages', 'model']);
  });

  it('stops when it is canceled', async () => {
    let isGone = false;
    model.script((response) => response.on('close', () => (isGone = true)));
    const stream = await rpcStream(gateway, 'SendStreamingMessage', { message: userMessage('go') }, { agent: 'plain' });
    const { id } = (await stream.next())!.data.result.task;
    await eventually(() => model.requests.length, Boolean);
    await rpc(gateway, 'CancelTask', { id }, { agent: 'plain' });
    await eventually(() => isGone, Boolean);
    expect((await stream.rest()).at(-1)!.data.result.statusUpdate.status.state).toBe('TASK_STATE_CANCELED');
  });

  it('does not reveal its key, whole or in pieces, in texts or tool arguments', async () => {
    await agent('telling', { apiKey: key, tools: ['town__*'] });
    model.script(
      { text: ['It is ', key.slice(0, 7), key.slice(7), '.'], ...call('town__weather', { city: key }) },
      (response) =>
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ choices: [{ message: { content: `I said ${key}` }, finish_reason: 'stop' }] })),
    );
    const task = await ask('telling', 'what is your key?');
    expect(outcome(task)).toEqual(['TASK_STATE_COMPLETED', 'I said [redacted]', undefined]);
    const stored = await gateway.sql(
      'select t::text || (select string_agg(e::text, $$ $$) from a2a_task_events e) as kept from a2a_tasks t',
    );
    expect(JSON.stringify([task, stored, upstream.calls.at(-1)])).not.toContain(key);
    expect(upstream.calls.at(-1)!.args).toEqual({ city: '[redacted]' });
  });

  it('keeps its key secret: sent only to its own origin, sealed, and never shown', async () => {
    const made = await agent('keyed', { apiKey: key });
    model.script(refuses(400, `bad ${key}`), { text: ['Hello.'] });
    await ask('keyed', 'go');
    await ask('keyed', 'go');
    expect(model.requests.map(({ headers }) => headers.authorization)).toEqual(Array(2).fill(`Bearer ${key}`));
    const change = (executor: object) =>
      gateway.call('PATCH', '/api/a2a/published/keyed', { executor: { kind: 'llm', model: 'n', ...executor } });
    const unchanged = await change({ url: `${model.url}/` });
    model.script({ text: ['Hello.'] });
    await ask('keyed', 'go');
    expect(model.requests[0]).toMatchObject({ body: { model: 'n' }, headers: { authorization: `Bearer ${key}` } });
    const elsewhere = await change({ url: 'http://127.0.0.1:9/v1' });
    expect([elsewhere.status, elsewhere.body.violations[0].field]).toEqual([422, 'executor.apiKey']);
    const seen = await Promise.all([
      gateway.call('GET', '/api/a2a/published/keyed'),
      gateway.call('GET', '/api/a2a/published'),
      gateway.sql('select * from published_agents'),
      gateway.sql('select * from a2a_tasks'),
      gateway.sql('select * from a2a_task_events'),
      gateway.sql('select * from audit_events'),
    ]);
    expect(JSON.stringify([made, unchanged, elsewhere, seen]) + gateway.log.join()).not.toContain(key);
    expect((await change({ url: model.url, apiKey: null })).status).toBe(200);
    model.script({ text: ['Hello.'] });
    await ask('keyed', 'go');
    expect(model.requests[0]!.headers.authorization).toBeUndefined();
  });

  it('is not published with a forbidden url', async () => {
    const body = { name: 'inner', description: 'x', executor: { kind: 'llm', url: 'http://10.0.0.1/v1', model: 'm' } };
    expect((await gateway.call('POST', '/api/a2a/published', body)).body.code).toBe('url_not_allowed');
  });

  it('has the tools of its own org only', async () => {
    const other = await gateway.tokenOf('other', 'oscar', 'admin');
    const executor = { kind: 'llm', url: model.url, model: 'm', tools: ['*'] };
    await publish(gateway, { name: 'theirs', executor }, other);
    model.script({ text: ['Hello.'] });
    await ask('theirs@other', 'go', {}, other);
    expect(functionsAt(0).filter((name) => name.includes('town'))).toEqual([]);
  });
});

describe('a model that is declared', () => {
  it('has its key from the variable that the file names, and a new one after the next start', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rialto-llm-'));
    const file = join(folder, 'rialto.config.json');
    const model = await ModelServer.start();
    const executor = { kind: 'llm', url: model.url, model: 'm', apiKeyEnv: 'MODEL_KEY' };
    writeFileSync(file, JSON.stringify({ agents: [{ name: 'declared', executor }] }));
    const gateway = await startTestGateway({ RIALTO_CONFIG_FILE: file, MODEL_KEY: 'first-key' });
    const bearer = async (home: TestGateway) => {
      model.script({ text: ['Hello.'] });
      await rpc(home, 'SendMessage', { message: userMessage('go') }, { agent: 'declared' });
      return model.requests[0]!.headers.authorization;
    };
    expect(await bearer(gateway)).toBe('Bearer first-key');
    const next = await startTestGateway({ RIALTO_CONFIG_FILE: file, MODEL_KEY: 'second-key' }, gateway);
    await eventually(
      () => bearer(gateway),
      (key) => key === 'Bearer second-key',
    );
    await next.close();
    await gateway.close();
    await model.close();
    rmSync(folder, { recursive: true });
  });
});

describe('when the worker of a model is killed', () => {
  it('begins the turn again, unless it called a tool that must not be called twice', async () => {
    const home = await startTestGateway({ RIALTO_ROLE: 'api' });
    const [model, upstream] = [await ModelServer.start(), await TestUpstream.start()];
    upstream.add('look', () => text('seen'), { annotations: { readOnlyHint: true } });
    upstream.add('charge', () => text('charged'));
    await home.call('POST', '/api/mcp/servers', { id: 'bank', url: upstream.url });
    const send = async (tool: string) => {
      const executor = { kind: 'llm', url: model.url, model: 'm', tools: ['bank__*'] };
      await publish(home, { name: tool, executor });
      model.script({ text: ['Let me see.'], ...call(`bank__${tool}`) }, never);
      const params = { message: userMessage('go'), configuration: { returnImmediately: true } };
      const { id } = (await rpc(home, 'SendMessage', params, { agent: tool })).task;
      const worker = home.beside({ RIALTO_ROLE: 'worker' });
      await worker.ready;
      await eventually(
        () => model.requests.length,
        (asked) => asked === 2,
      );
      worker.child.kill('SIGKILL');
      await worker.ended;
      model.script({ text: ['Done', ' anew.'] });
      const second = home.beside({ RIALTO_ROLE: 'worker' });
      await second.ready;
      const task = await eventually(
        () => rpc(home, 'GetTask', { id }, { agent: tool }),
        ({ status }) => ['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED'].includes(status.state),
      );
      second.child.kill('SIGKILL');
      await second.ended;
      return task;
    };
    const looked = await send('look');
    expect([outcome(looked)[1], looked.artifacts[0].parts.map((part: any) => part.text).join('')]).toEqual([
      'Done anew.',
      'Done anew.',
    ]);
    expect(outcome(await send('charge'))).toEqual([
      'TASK_STATE_FAILED',
      expect.stringContaining('the outcome is unknown'),
      'outcome_unknown',
    ]);
    expect(upstream.calls.map(({ name }) => name)).toEqual(['look', 'charge']);
    await Promise.all([model.close(), upstream.close()]);
    await home.close();
  });
});
