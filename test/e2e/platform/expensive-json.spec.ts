import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { costlyJson, tooCostlyJson } from '../../support/fuzz/costly-json.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { leastOf, LoopBlocks } from '../../support/gateway/loop-blocks.js';

/**
 * Limit for one block of the event loop by one request, in milliseconds of CPU time: twice the goal, because the same
 * work takes up to twice as long while other specs run.
 */
const mostBlock = 100;
const onThisNode = LoopBlocks.isPossible ? it : it.skip;
const peer = join(process.cwd(), 'test', 'support', 'fuzz', 'costly-peer.mjs');

describe('X2.4 JSON that takes long to read does not block other callers', () => {
  let gateway: TestGateway;
  let child: ChildProcess;
  let folder: string;
  let costly: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rialto-costly-'));
    gateway = await startTestGateway({ RIALTO_RATE_LIMIT_PRINCIPAL: '1000000', RIALTO_RATE_LIMIT_ORG: '1000000' });
    await publish(gateway);
    child = spawn(process.execPath, [peer], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [port] = (await once(child.stdout!, 'data')) as [Buffer];
    const at = `127.0.0.1:${Number(port.toString())}`;
    for (const [path, body] of [
      ['/api/a2a/agents', { url: `http://${at}/`, slug: 'costly' }],
      ['/api/mcp/servers', { id: 'json', url: `http://${at}/json` }],
      ['/api/mcp/servers', { id: 'stream', url: `http://${at}/stream` }],
      ['/api/mcp/servers', { id: 'socket', url: `ws://${at}/` }],
      ['/api/mcp/servers', { id: 'program', command: process.execPath, args: [peer, 'program'] }],
    ] as const)
      expect(await gateway.call('POST', path, body)).toMatchObject({ status: 201 });
    costly = `http://${at}`;
    await rpc(gateway, 'SendMessage', { message: userMessage('warm') });
  });
  afterAll(async () => {
    await gateway.close();
    child.kill();
    rmSync(folder, { recursive: true });
  });

  /** Sends a request; returns its status, the beginning of the answer and the longest block of the event loop. */
  const send = async (path: string, body: string) => {
    if (path === 'ws') return sendFrame(body);
    const headers = {
      authorization: `Bearer ${gateway.token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'a2a-version': '1.0',
    };
    const bytes = Buffer.from(body);
    const blocks = new LoopBlocks();
    const answer = await fetch(`${gateway.url}${path}`, { method: 'POST', headers, body: bytes });
    const read = Buffer.from(await answer.arrayBuffer());
    const block = blocks.end();
    return { status: answer.status, text: read.toString('latin1', 0, 1_000), block };
  };

  /** Sends a frame over a WebSocket; returns the beginning of the next frame, and the longest block. */
  const sendFrame = async (text: string) => {
    const headers = { authorization: `Bearer ${gateway.token}` };
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/a2e`, { headers });
    await once(socket, 'open');
    const bytes = Buffer.from(text);
    const blocks = new LoopBlocks();
    socket.send(bytes, { binary: false });
    const [read] = (await once(socket, 'message')) as [Buffer];
    const block = blocks.end();
    socket.close();
    await once(socket, 'close');
    return { status: 200, text: read.toString('latin1', 0, 1_000), block };
  };

  const call = (method: string, params: string): string =>
    `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`;
  const message = (members: string): string =>
    `{"message":{"messageId":"${Math.random()}","role":"ROLE_USER",${members}}}`;
  const a2eCall = (args: string): string => `{"type":"mcp/call_tool","id":"m","tool":"json__read","arguments":${args}}`;
  const agent = '/a2a/agents/echo';
  const requests: Record<string, (json: string) => [path: string, body: string]> = {
    'SendMessage with an unknown member': (json) => [agent, call('SendMessage', `{"unknown":${json}}`)],
    'SendMessage with data': (json) => [agent, call('SendMessage', message(`"parts":[{"data":{"x":${json}}}]`))],
    'SendMessage with metadata': (json) => [
      agent,
      call('SendMessage', message(`"parts":[{"text":"x"}],"metadata":{"x":${json}}`)),
    ],
    'SendStreamingMessage with data': (json) => [
      agent,
      call('SendStreamingMessage', message(`"parts":[{"data":{"x":${json}}}]`)),
    ],
    'message:send with data': (json) => [`${agent}/message:send`, message(`"parts":[{"data":{"x":${json}}}]`)],
    'tools/call of an agent': (json) => [
      '/mcp',
      call('tools/call', `{"name":"costly.read","arguments":{"x":${json}}}`),
    ],
    'tools/call of a server': (json) => ['/mcp', call('tools/call', `{"name":"json__read","arguments":{"x":${json}}}`)],
    'the A2E call of a tool': (json) => ['/a2e', a2eCall(`{"x":${json}}`)],
    'the A2E call of a tool over a WebSocket': (json) => ['ws', a2eCall(`{"x":${json}}`)],
    'the REST call of a tool': (json) => ['/api/mcp/tools/call', `{"name":"json__read","arguments":{"x":${json}}}`],
    'an invocation': (json) => ['/api/a2a/invoke', `{"agentCardId":"costly","skillId":"read","args":{"x":${json}}}`],
    'a dispatch': (json) => ['/api/a2a/dispatch', `{"workType":"read","args":{"x":${json}}}`],
    'an explanation': (json) => ['/api/a2a/dispatch/explain', `{"workType":"read","args":{"x":${json}}}`],
    'a published agent': (json) => ['/api/a2a/published', `{"name":"x","executor":{"kind":"echo"},"x":${json}}`],
    'a server': (json) => ['/api/mcp/servers', `{"id":"x","url":"http://127.0.0.1:1","x":${json}}`],
    'a policy': (json) => ['/api/policies', `{"name":"x","text":${json}}`],
    'a test of policies': (json) => [
      '/api/policies/test',
      `{"principal":"User::\\"x\\"","action":"admin_read","resource":"Org::\\"default\\"","context":{"x":${json}}}`,
    ],
  };

  describe.each(Object.entries(requests))('in %s', (_, make) => {
    onThisNode.each(Object.entries(costlyJson))('%s', async (__, json) => {
      const block = await leastOf(mostBlock, async () => {
        const sent = await send(...make(json));
        expect(sent.status).toBeLessThan(500);
        return sent.block;
      });
      expect(block).toBeLessThan(mostBlock);
    });
  });

  const answers: Record<string, (file: string) => [path: string, body: string]> = {
    ...Object.fromEntries(
      ['json', 'stream', 'socket', 'program'].map((server) => [
        `tools/call of the server "${server}"`,
        (file: string) =>
          ['/mcp', call('tools/call', `{"name":"${server}__read","arguments":{"file":"${file}"}}`)] as const,
      ]),
    ),
    'the A2E call of a tool': (file) => ['/a2e', a2eCall(`{"file":"${file}"}`)],
    'the A2E call of a tool over a WebSocket': (file) => ['ws', a2eCall(`{"file":"${file}"}`)],
    'the REST call of a tool': (file) => [
      '/api/mcp/tools/call',
      `{"name":"json__read","arguments":{"file":"${file}"}}`,
    ],
    'tools/call of an agent': (file) => [
      '/mcp',
      call('tools/call', `{"name":"costly.read","arguments":{"file":"${file}"}}`),
    ],
    'an invocation': (file) => [
      '/api/a2a/invoke',
      `{"agentCardId":"costly","skillId":"read","args":{"file":"${file}"}}`,
    ],
  };
  const fileOf = (json: string): string => {
    const file = join(folder, 'answer.json');
    writeFileSync(file, json);
    return file;
  };

  describe.each(Object.entries(answers))('in the answer to %s', (name, make) => {
    onThisNode.each(Object.entries(costlyJson))('%s', async (_, json) => {
      const request = make(fileOf(json));
      const block = await leastOf(mostBlock, async () => {
        const sent = await send(...request);
        expect([sent.status, sent.text]).toEqual([200, expect.not.stringMatching(/isError|"error"/)]);
        return sent.block;
      });
      expect(block).toBeLessThan(mostBlock);
    });

    onThisNode.each(Object.entries(tooCostlyJson))('refuses %s', async (_, json) => {
      const request = make(fileOf(json));
      const block = await leastOf(mostBlock, async () => {
        const sent = await send(...request);
        expect(sent.text).toMatch(
          name.includes('agent') || name === 'an invocation' ? /a body of more than \d+ bytes/ : /more than 100000/,
        );
        return sent.block;
      });
      expect(block).toBeLessThan(mostBlock);
    });
  });

  onThisNode.each(['instructions', 'title', 'capabilities'])(
    'refuses a server that describes itself with 4 MB of %s',
    async (member) => {
      const block = await leastOf(mostBlock, async (attempt) => {
        const sent = await send('/api/mcp/servers', `{"id":"${member}-${attempt}","url":"${costly}/${member}"}`);
        expect(sent.text).toContain('serverInfo, capabilities and instructions have more than 262144 characters');
        return sent.block;
      });
      expect(block).toBeLessThan(mostBlock);
    },
  );
});
