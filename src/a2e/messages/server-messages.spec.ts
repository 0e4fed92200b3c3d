import type { CallContext } from '../../kernel/call-context.js';
import { a2eError } from '../../protocol/a2e/errors.js';
import type { ServerViews } from '../../upstreams/server-views.js';
import type { UpstreamAdmin } from '../../upstreams/upstream-admin.js';
import type { UpstreamSubscriptions } from '../../upstreams/upstream-subscriptions.js';
import { ServerMessages } from './server-messages.js';
import type { ServersInSight } from './servers-in-sight.js';

describe('ServerMessages.register', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  const payload = { server_id: 'a', url: 'https://a.example/mcp' };
  const endless = () => new Promise<never>(() => {});
  const messages = (register: (ctx: CallContext) => Promise<unknown>, ready: () => Promise<void> = endless) => {
    const get = () => Promise.resolve({ id: 'a', tools: [], roots: [], counts: { resources: 0, prompts: 0 } });
    return new ServerMessages(
      { register } as unknown as UpstreamAdmin,
      { get } as unknown as ServerViews,
      { ready } as unknown as UpstreamSubscriptions,
      { requireServer: () => Promise.resolve({}) } as unknown as ServersInSight,
    );
  };

  it('(E14) ends with a reason before the client times out when the server is silent, and stays ended', async () => {
    let signal: AbortSignal | undefined;
    const silent = (ctx: CallContext) => ((signal = ctx.signal), endless());
    const refused = messages(silent)
      .register({ ctx: {} as CallContext, payload })
      .catch((thrown: unknown) => a2eError(thrown, 'server'));
    await jest.advanceTimersByTimeAsync(18_000);
    expect(await refused).toMatchObject({
      code: 'mcp_unavailable',
      message: 'the MCP server did not answer in time',
      retryable: true,
    });
    expect(signal!.aborted).toBe(true);
  });

  it('(E14) returns a stored server when its connection is not ready in time', async () => {
    const stored = messages(() => Promise.resolve({ id: 'a' })).register({ ctx: {} as CallContext, payload });
    await jest.advanceTimersByTimeAsync(18_000);
    expect(await stored).toMatchObject({ server_id: 'a' });
  });
});
