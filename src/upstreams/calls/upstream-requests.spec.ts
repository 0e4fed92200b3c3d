import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import type { Act } from '../../kernel/verb-bus.js';
import { ServerConnections } from '../connections/server-connections.js';
import type { UpstreamConnection } from '../connections/upstream-connection.js';
import type { CallOptions } from '../connections/upstream-connection.types.js';
import type { RegisteredServer } from '../registered-server.types.js';
import { UpstreamRequests, type UpstreamRequest } from './upstream-requests.js';

describe('UpstreamRequests: a request on a new connection', () => {
  const principal = { kind: 'user', id: 'u', role: 'member', groups: [] } as const;
  const ctx = { org: { id: 'o', slug: 'o' }, principal } as unknown as CallContext;
  const act = {
    ctx,
    verb: 's__t',
    action: 'mcp_call',
    resource: { type: 'Tool', id: 's__t', parent: 's' },
  } as unknown as Act;
  const server = { row: { id: 's', serverId: 's', timeoutMs: 60_000, userCredentials: 'none' } } as RegisteredServer;
  const answers: Record<string, JsonObject> = { 'tools/call': { content: [] }, 'resources/read': { contents: [] } };
  let connectedAt = 1;
  let [reads, checks, open] = [0, 0, 0];
  let isAllowed = true;
  const sent: string[] = [];
  const connection = {
    get connectedAt() {
      return connectedAt;
    },
    request: async (method: string, _params: JsonObject, options: CallOptions) => {
      await options.opened?.(connection as unknown as UpstreamConnection, options);
      sent.push(method);
      return answers[method];
    },
  };
  const requests = (): UpstreamRequests => {
    const connections = new ServerConnections({
      make: () => connection as unknown as UpstreamConnection,
      read: () => Promise.resolve(void reads++),
    });
    const requireStillAllowed = (): Promise<void> => {
      checks++;
      return isAllowed ? Promise.resolve() : Promise.reject(new RialtoError('tool_changed'));
    };
    return new UpstreamRequests(
      { chooseConnections: () => Promise.resolve({ connections, isOwn: false }) } as never,
      {} as never,
      {} as never,
      { countCall: () => (open++, () => void open--), countToolCall: () => Promise.resolve() } as never,
      { decidedPeer: () => undefined, requireStillAllowed } as never,
    );
  };
  const toolCall: UpstreamRequest = { server, kind: 'tool', method: 'tools/call', params: {} };
  beforeEach(() => {
    connectedAt = 1;
    [reads, checks, open] = [0, 0, 0];
    isAllowed = true;
    sent.length = 0;
  });

  it('checks a tool call again after the offer was read, once per connection', async () => {
    const some = requests();
    await some.sendRequest(act, toolCall);
    await some.sendRequest(act, toolCall);
    expect([sent.length, reads, checks]).toEqual([2, 1, 1]);
    connectedAt = 2;
    await some.sendRequest(act, toolCall);
    expect([sent.length, reads, checks]).toEqual([3, 2, 2]);
  });

  it('does not send a tool call that is no longer allowed, and counts it no longer', async () => {
    isAllowed = false;
    await expect(requests().sendRequest(act, toolCall)).rejects.toMatchObject({ code: 'tool_changed' });
    expect([sent.length, open]).toEqual([0, 0]);
  });

  it('reads nothing for a request that is not a tool call', async () => {
    await requests().sendRequest(act, { server, kind: 'resource', method: 'resources/read', params: {} });
    expect([sent, reads, checks, open]).toEqual([['resources/read'], 0, 0, 0]);
  });
});
