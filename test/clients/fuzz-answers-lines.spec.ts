import * as sdk from '@a2a-js/sdk';
import { encodeGrpcStatusDetails } from '@a2a-js/sdk/errors/grpc';
import { A2AService } from '@a2a-js/sdk/server/grpc';
import { constants, type ServerHttp2Stream } from 'node:http2';
import { Deadline } from '../../src/kernel/abort.js';
import type { A2aVersion } from '../../src/protocol/a2a/model.js';
import { SdkTransport, type SdkHop } from '../../src/a2a-client/transports/sdk.transport.js';
import { parseAllowList } from '../../src/platform/http/outbound/address.js';
import { SafeFetch } from '../../src/platform/http/outbound/safe-fetch.js';
import { UpstreamConnection } from '../../src/upstreams/connections/upstream-connection.js';
import { UpstreamTransports } from '../../src/upstreams/transports/upstream-transports.js';
import {
  amplyMs,
  cases,
  flawOf,
  noUnhandledRejections,
  patience,
  recovered,
  seed,
  setConnectMs,
  timeoutMs,
} from '../support/fuzz/fuzz-flaw.js';
import { frame, FuzzGrpcPeer, type GrpcAnswer } from '../support/fuzz/fuzz-grpc-peer.js';
import { FuzzLinePeer } from '../support/fuzz/fuzz-line-peer.js';
import { eventually } from '../support/gateway/eventually.js';
import { Random } from '../support/fuzz/random.js';

const local = { allow: parseAllowList('127.0.0.0/8'), httpsOnly: false };
const unused = undefined as never;

describe('on one connection, a call ends in time with a result or a known error for any answer', () => {
  noUnhandledRejections();

  const params = { message: { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] } };

  /** Starts a gRPC agent with corrupted answers, and a client for it. */
  const grpcAgent = async (random: Random) => {
    const status = { state: 'TASK_STATE_COMPLETED' };
    const artifacts = [{ artifactId: 'a', parts: [{ text: 'hello' }, { data: { n: 1 } }] }];
    const task = { id: 't', contextId: 'c', status, artifacts };
    const sent = A2AService.sendMessage.responseSerialize(sdk.SendMessageResponse.fromJSON({ task }));
    const events = [{ task }, { statusUpdate: { taskId: 't', contextId: 'c', status } }].map((event) =>
      A2AService.sendStreamingMessage.responseSerialize(sdk.StreamResponse.fromJSON(event)),
    );
    const known = A2AService.getTask.responseSerialize(sdk.Task.fromJSON(task));
    const peer = await FuzzGrpcPeer.start(random, (path) => {
      if (path === A2AService.sendMessage.path) return [sent];
      return path === A2AService.sendStreamingMessage.path ? events : [known];
    });
    const fetch = new SafeFetch(local);
    const transport = new SdkTransport(fetch, local, {});
    const hop = (withinMs = timeoutMs, version: A2aVersion = '1.0'): SdkHop => ({
      endpoint: { url: peer.address, binding: 'GRPC', version },
      headers: { headersFor: () => Promise.resolve({}), renew: () => false },
      deadline: new Deadline(withinMs),
      signals: [],
    });
    const close = async (): Promise<void> => {
      transport.close();
      await peer.close();
      await fetch.close();
    };
    return { peer, transport, hop, close, sent };
  };

  it(
    `${cases} answers of an agent over gRPC`,
    async () => {
      const random = new Random(seed);
      const { peer, transport, hop, close } = await grpcAgent(random);
      const calls: (() => Promise<unknown>)[] = [
        () => transport.send(hop(), params),
        () => transport.getTask(hop(), 't'),
        async () => {
          let count = 0;
          for await (const event of transport.stream(hop(), params)) if (event && ++count > 50) break;
        },
        () => transport.send(hop(timeoutMs, '0.3'), params),
        () => transport.getTask(hop(timeoutMs, '0.3'), 't'),
      ];
      const flaws: string[] = [];
      for (let index = 0; index < cases; index++) {
        peer.goodShare = 10;
        const flaw = await flawOf(random.pick(calls));
        if (flaw !== undefined) flaws.push(`${index}: ${flaw}`);
        if (index % 50 !== 49) continue;
        // After correct answers return, the peer is served as before, when its channel is open again.
        peer.goodShare = 100;
        await recovered(() => transport.send(hop(amplyMs), params));
      }
      await close();
      expect(flaws.slice(0, 5)).toEqual([]);
    },
    patience,
  );

  // Each of these once ended the process, because the SDK reads it in a callback of the gRPC library.
  const details = (bytes: Buffer) => ({ 'grpc-status': '5', 'grpc-status-details-bin': bytes.toString('base64') });
  it.each<[string, A2aVersion, GrpcAnswer, string]>([
    ['an empty answer', '1.0', { body: frame(Buffer.alloc(0)) }, 'remote_invalid_response'],
    ['an empty answer of 0.3', '0.3', { body: frame(Buffer.alloc(0)) }, 'remote_invalid_response'],
    ['details that end too early', '1.0', { trailers: details(Buffer.from([0x1a, 0x20])) }, 'remote_error'],
    ['details of 0.3 that end too early', '0.3', { trailers: details(Buffer.from([0x1a, 0x20])) }, 'remote_error'],
    [
      'a reason that is the name of an inherited member',
      '1.0',
      { trailers: details(encodeGrpcStatusDetails(5, 'gone', 'constructor')) },
      'remote_error',
    ],
  ])('%s (gRPC %s) fails only the call, not the process', async (_, version, answer, code) => {
    const { peer, transport, hop, close } = await grpcAgent(new Random(seed));
    peer.fixed = answer;
    await expect(transport.send(hop(amplyMs, version), params)).rejects.toMatchObject({ code });
    await close();
  });

  it('dials again after a connection is out of memory, and lets its other calls end', async () => {
    const { peer, transport, hop, close, sent } = await grpcAgent(new Random(seed));
    const held: ServerHttp2Stream[] = [];
    const body = frame(Buffer.from(sent));
    peer.fixed = { body, cut: (stream) => void held.push(stream) };
    const first = transport.send(hop(amplyMs), params);
    await eventually(
      () => Promise.resolve(held.length),
      (count) => count === 1,
    );
    peer.fixed = {
      body,
      cut: (stream) =>
        stream.session === held[0]!.session ? stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM) : stream.end(),
    };
    const refused = await transport.send(hop(amplyMs), params).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'remote_transport', data: { grpcStatus: 8, httpStatus: 429 } });
    expect(await transport.send(hop(amplyMs), params)).toHaveProperty('task');
    held[0]!.end();
    expect(await first).toHaveProperty('task');
    await close();
  });

  // Most of these wait for a timeout of the call.
  const fewer = Math.ceil(cases / 4);
  it.each(['websocket', 'sse'] as const)(
    `${fewer} answers of an MCP server over %s`,
    async (kind) => {
      const random = new Random(seed);
      const serverInfo = { name: 'fuzz', version: '1' };
      const peer = await FuzzLinePeer.start(kind, random, ({ id, method }) => {
        if (id === undefined) return undefined;
        const responseOf = (value: object): object => ({ jsonrpc: '2.0', id, ...value });
        if (method === 'server/discover') return responseOf({ error: { code: -32601, message: 'no' } });
        if (method === 'initialize')
          return responseOf({ result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo } });
        return responseOf({ result: { content: [{ type: 'text', text: 'hello' }], structuredContent: { n: 1 } } });
      });
      const fetch = new SafeFetch(local);
      const transports = new UpstreamTransports(fetch, unused, unused, unused, unused);
      const connection = new UpstreamConnection({
        server: 'fuzz',
        autoReconnect: true,
        changed: () => undefined,
        transportKind: kind,
        transport: () => transports.openTransport({ transport: kind, url: peer.url, headers: {} }, unused),
        times: { connectMs: timeoutMs, probeMs: 100, pauseMs: () => 0 },
      });
      const call = (withinMs = timeoutMs) =>
        connection.request('tools/call', { name: 'x', arguments: {} }, { timeoutMs: withinMs });
      const flaws: string[] = [];
      for (let index = 0; index < fewer; index++) {
        peer.goodShare = random.pick([10, 60]);
        const flaw = await flawOf(call);
        if (flaw !== undefined) flaws.push(`${index}: ${flaw}`);
        if (index % 25 !== 24) continue;
        peer.goodShare = 100;
        setConnectMs(connection, amplyMs);
        await recovered(() => call(amplyMs));
        setConnectMs(connection, timeoutMs);
      }
      await connection.close();
      await peer.close();
      await fetch.close();
      expect(flaws.slice(0, 5)).toEqual([]);
    },
    patience,
  );
});
