import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { WebSocketServer } from 'ws';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';
import { eventually } from '../../support/gateway/eventually.js';
import { publish } from '../../support/clients/a2a.js';

// Compared as texts, because a JSON parser would round the numbers.
const big = '1915883588174806058';
const huge = '12345678901234567890';
const object = `{"id":${big},"more":[-${huge},{"n":9007199254740993}],"text":"${huge}"}`;

/** A JSON-RPC server that answers with raw texts. `heard` has all request bodies. */
class TextServer {
  readonly heard: string[] = [];
  private constructor(
    readonly server: Server,
    readonly url: string,
  ) {}

  static async start(
    answer: (body: string, path: string) => { text: string; events?: boolean },
    card?: (url: string) => object,
  ): Promise<TextServer> {
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        if (request.method === 'GET') {
          if (!card || !request.url!.includes('.well-known')) return response.writeHead(405).end();
          return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(card(self.url)));
        }
        self.heard.push(body);
        const { text, events } = answer(body, request.url!);
        if (text === '') return response.writeHead(202).end();
        if (!events) return response.writeHead(200, { 'content-type': 'application/json' }).end(text);
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (const event of text.split('\n')) response.write(`event: message\ndata: ${event}\n\n`);
        return response.end();
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const self = new TextServer(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return self;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** Returns the answers of an MCP server of the 2025 era with one tool that returns `object`. */
function mcpAnswer(body: string): string {
  const { method, id } = JSON.parse(body) as { method: string; id?: number };
  const reply = (result: string): string => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
  const information = '"capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}';
  if (method === 'initialize') return reply(`{"protocolVersion":"2025-06-18",${information}}`);
  if (method === 'tools/list') return reply('{"tools":[{"name":"back","inputSchema":{"type":"object"}}]}');
  if (method === 'tools/call') return reply(`{"content":[{"type":"text","text":"x"}],"structuredContent":${object}}`);
  if (id === undefined) return '';
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"no"}}`;
}

describe('Integers beyond 2^53 keep their digits (C27, E6)', () => {
  let gateway: TestGateway;
  let sink: WebhookSink;
  const open: { close(): unknown }[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway();
    sink = await startWebhookSink();
    await publish(gateway, { name: 'back', executor: { kind: 'echo' } });
  });
  afterAll(async () => {
    await gateway.close();
    await sink.close();
    for (const one of open) one.close();
  });

  const post = async (path: string, body: string, headers: Record<string, string> = {}): Promise<string> => {
    const response = await fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json', ...headers },
      body,
    });
    return response.text();
  };
  const get = async (path: string, headers: Record<string, string> = {}): Promise<string> =>
    (
      await fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${gateway.token}`, ...headers } })
    ).text();
  const register = async (id: string, registration: object): Promise<void> => {
    const { status, body } = await gateway.call('POST', '/api/mcp/servers', { id, ...registration });
    expect([status, body.detail]).toEqual([201, undefined]);
  };
  const callTool = (name: string, headers = {}, params = ''): Promise<string> =>
    post(
      '/mcp',
      `{"jsonrpc":"2.0","id":${huge},"method":"tools/call","params":{"name":"${name}","arguments":${object}${params}}}`,
      {
        accept: 'application/json, text/event-stream',
        ...headers,
      },
    );
  const isExact = (answer: string): void => {
    expect(answer).toContain(`"structuredContent":${object}`);
    expect(answer).toContain(`"id":${huge}`);
  };

  describe.each(['JSON', 'events'])('through an MCP server over HTTP that answers by %s', (kind) => {
    it('in both eras', async () => {
      const server = await TextServer.start((body) => ({ text: mcpAnswer(body), events: kind === 'events' }));
      open.push(server);
      const name = `web-${kind.toLowerCase()}`;
      await register(name, { url: `${server.url}/mcp` });
      isExact(await callTool(`${name}__back`));
      const meta =
        `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
        `"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},` +
        `"io.modelcontextprotocol/clientCapabilities":{}}`;
      isExact(
        await callTool(
          `${name}__back`,
          { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': `${name}__back` },
          meta,
        ),
      );
      const calls = server.heard.filter((body) => body.includes('tools/call'));
      expect(calls.map((body) => body.includes(`"arguments":${object}`))).toEqual([true, true]);
      expect(await post('/api/mcp/tools/call', `{"name":"${name}__back","arguments":${object}}`)).toContain(
        `"structuredContent":${object}`,
      );
    });
  });

  it('through a program and a WebSocket', async () => {
    const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => 'mcp' });
    await once(sockets, 'listening');
    const received: string[] = [];
    sockets.on('connection', (socket) =>
      socket.on('message', (body: Buffer) => {
        received.push(body.toString());
        const answer = mcpAnswer(body.toString());
        if (answer) socket.send(answer);
      }),
    );
    open.push({ close: () => (sockets.clients.forEach((one) => one.terminate()), sockets.close()) });
    await register('ws', { url: `ws://127.0.0.1:${(sockets.address() as AddressInfo).port}/` });
    isExact(await callTool('ws__back'));
    expect(received.some((body) => body.includes(`"arguments":${object}`))).toBe(true);

    await register('program', {
      command: process.execPath,
      args: [join(__dirname, '../../support/stubs/exact-program.mjs')],
    });
    const answer = await callTool('program__back');
    expect(answer).toContain(`"structuredContent":${object}`);
  });

  const message = (more = ''): string =>
    `{"message":{"messageId":"m${Math.random()}","role":"ROLE_USER","parts":[{"data":${object}}],` +
    `"metadata":${object}}${more}}`;
  const v1 = { 'a2a-version': '1.0' };

  it('in messages, tasks, streams and ids of A2A 1.0, over JSON-RPC and REST', async () => {
    const sent = await post(
      '/a2a/agents/back',
      `{"jsonrpc":"2.0","id":${huge},"method":"SendMessage","params":${message()}}`,
      v1,
    );
    expect(sent).toContain(`"id":${huge}`);
    expect(sent.split(object)).toHaveLength(sent.split('"more"').length);
    const { id } = (JSON.parse(sent) as { result: { task: { id: string } } }).result.task;
    const got = await post(
      '/a2a/agents/back',
      `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"${id}"}}`,
      v1,
    );
    expect(got.split(object).length).toBeGreaterThan(3);
    expect(await get(`/a2a/agents/back/tasks/${id}`, v1)).toContain(object);
    expect(await post('/a2a/agents/back/message:send', message(), v1)).toContain(object);
    expect(await post('/a2a/agents/back/message:stream', message(), v1)).toContain(object);
    const events = await post(
      '/a2a/agents/back',
      `{"jsonrpc":"2.0","id":${big},"method":"SendStreamingMessage","params":${message()}}`,
      v1,
    );
    expect(events).toContain(object);
    expect(events).toContain(`"id":${big}`);
    const list = await post(
      '/a2a/agents/back',
      `{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"includeArtifacts":true}}`,
      v1,
    );
    expect(list).toContain(object);
  });

  it('in 0.3, with its own format', async () => {
    const params =
      `{"message":{"kind":"message","messageId":"o","role":"user",` +
      `"parts":[{"kind":"data","data":${object}}],"metadata":${object}}}`;
    const sent = await post(
      '/a2a/agents/back',
      `{"jsonrpc":"2.0","id":${huge},"method":"message/send","params":${params}}`,
    );
    expect(sent.split(object).length).toBeGreaterThan(3);
    expect(sent).toContain(`"id":${huge}`);
  });

  it('in webhooks', async () => {
    const configuration = `,"configuration":{"taskPushNotificationConfig":{"url":"${sink.url}"}}`;
    await post(
      '/a2a/agents/back',
      `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":${message(configuration)}}`,
      v1,
    );
    await eventually(
      () => sink.received.map(({ text }) => text),
      (texts) => texts.some((text) => text.includes(object)),
    );
  });

  describe.each(['1.0', '0.3'])('of an agent with version %s', (version) => {
    const cardOf = (url: string): object => ({
      name: `Exact ${version}`,
      description: 'x',
      version: '1',
      ...(version === '0.3'
        ? { protocolVersion: '0.3.0', url: `${url}/rpc`, preferredTransport: 'JSONRPC' }
        : { supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] }),
      capabilities: { streaming: true },
      defaultInputModes: ['*/*'],
      defaultOutputModes: ['*/*'],
      skills: [{ id: 'do', name: 'Do', description: 'does', tags: ['x'] }],
    });
    const taskOf = (): string =>
      version === '0.3'
        ? `{"kind":"task","id":"T","contextId":"C","status":{"state":"completed"},"metadata":${object},` +
          `"artifacts":[{"artifactId":"a","parts":[{"kind":"data","data":${object}}]}]}`
        : `{"task":{"id":"T","contextId":"C","status":{"state":"TASK_STATE_COMPLETED"},"metadata":${object},` +
          `"artifacts":[{"artifactId":"a","parts":[{"data":${object}}]}]}}`;

    it('as a tool, as an executor, in an answer and in a stream', async () => {
      const agent = await TextServer.start((body) => {
        const { id, method } = JSON.parse(body) as { id: unknown; method: string };
        return {
          text: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${taskOf()}}`,
          events: /stream/i.test(method),
        };
      }, cardOf);
      open.push(agent);
      const { body } = await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
      const tool = `exact_${version.replace('.', '_')}`;
      const tools = await gateway.rpc('tools/list');
      const name = (tools.result.tools as { name: string }[])
        .map((one) => one.name)
        .find((one) => one.includes(`exact-${version.replace('.', '-')}`) || one.includes(tool))!;
      const answer = await callTool(name);
      expect(answer).toContain(object.slice(0, 60));
      expect(agent.heard.at(-1)).toContain(object);
      await publish(gateway, {
        name: `through-${version.replace('.', '-')}`,
        executor: { kind: 'remote', agentId: body.id },
      });
      for (const method of ['SendMessage', 'SendStreamingMessage']) {
        const path = `/a2a/agents/through-${version.replace('.', '-')}`;
        const reply = await post(path, `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${message()}}`, v1);
        expect(reply).toContain(`"data":${object}`);
        expect(agent.heard.at(-1)!.split(object).length).toBeGreaterThan(1);
      }
    });
  });
});
