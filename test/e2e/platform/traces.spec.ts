import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data, failed } from '../../support/stubs/stub-behaviours.js';

const secret = 'canary-credential-of-the-agent';
const content = 'canary-text-of-the-caller';
const trace = 'ab'.repeat(16);
const caller = 'cd'.repeat(8);

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly status: { code: number; message?: string };
}

/** A collector of spans, which keeps the bodies of its requests. */
class Collector {
  readonly bodies: string[] = [];
  private readonly server: Server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      this.bodies.push(body);
      response.writeHead(request.url === '/v1/traces' ? 200 : 404, { 'content-type': 'application/json' }).end('{}');
    });
  });

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Returns the spans with the name of their service. */
  spans(): (OtlpSpan & { service: string })[] {
    return this.bodies.flatMap((body) =>
      JSON.parse(body).resourceSpans.flatMap(({ resource, scopeSpans }: any) => {
        const service = resource.attributes.find(({ key }: any) => key === 'service.name').value.stringValue;
        return scopeSpans.flatMap(({ spans }: any) => spans.map((span: OtlpSpan) => ({ ...span, service })));
      }),
    );
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

describe('a collector of spans', () => {
  let gateway: TestGateway;
  let agent: StubAgent;

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_ROLE: 'api' });
    agent = await startStubAgent({ name: 'Traced' });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url, credential: { type: 'bearer', token: secret } });
  });
  afterAll(async () => {
    await agent.close();
    await gateway.close();
  });

  const callTool = async (url: string) => {
    const response = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.token}`,
        'content-type': 'application/json',
        accept: 'application/json',
        traceparent: `00-${trace}-${caller}-01`,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'traced.work', arguments: { message: content } },
      }),
    });
    return (await response.json()) as { result?: unknown; error?: { data: { code: string } } };
  };
  /** Calls the tool twice in a process that sends its spans to this address, the second time in vain, and stops it. */
  const callsOfAProcess = async (endpoint: string) => {
    const one = gateway.beside({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, RIALTO_LOG_LEVEL: 'trace' });
    const url = await one.ready;
    agent.set(data({ ok: true }));
    const good = await callTool(url);
    agent.set((call) => failed(JSON.stringify(call.request.headers))(call));
    const bad = await callTool(url);
    one.child.kill('SIGTERM');
    const { code } = await one.ended;
    return { good, bad, code };
  };

  it('gets each call of an agent in the trace of its caller, and neither content nor credentials', async () => {
    const collector = new Collector();
    const { good, bad, code } = await callsOfAProcess(await collector.open());
    expect([good.error, bad.error?.data.code, code]).toEqual([undefined, 'remote_task_failed', 0]);
    const spans = collector.spans();
    expect(spans).toEqual([
      expect.objectContaining({ name: 'a2a_invoke', service: 'rialto', traceId: trace, status: { code: 0 } }),
      expect.objectContaining({ name: 'a2a_invoke', status: { code: 2, message: 'remote_task_failed' } }),
    ]);
    // The agent continues the trace from the span of the gateway, which continues it from that of the caller.
    expect(spans.map(({ parentSpanId }) => parentSpanId)).toEqual([caller, caller]);
    const parents = agent.requests.map(({ headers }) => String(headers.traceparent).split('-').slice(1, 3));
    expect(parents).toEqual(spans.map(({ spanId }) => [trace, spanId]));
    const sent = collector.bodies.join('\n');
    for (const word of [secret, content, gateway.token]) expect(sent).not.toContain(word);
    await collector.close();
  });

  it('that is away changes no call, and does not stop the process from ending', async () => {
    const collector = new Collector();
    const endpoint = await collector.open();
    await collector.close();
    const { good, bad, code } = await callsOfAProcess(endpoint);
    expect([good.error, bad.error?.data.code, code]).toEqual([undefined, 'remote_task_failed', 0]);
  });
});
