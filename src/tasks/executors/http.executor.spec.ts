import type { Logger } from '../../platform/telemetry/logger.js';
import type { PublicUrl } from '../../platform/http/public-url.js';
import type { ReportApplier } from '../external/report-applier.js';
import type { WorkOrders } from '../external/work-orders.js';
import type { TaskRun } from '../executor.port.js';
import type { HttpCalls } from './http-calls.js';
import { HttpExecutor } from './http.executor.js';

describe('HttpExecutor', () => {
  const warn = jest.fn();
  const steps: string[] = [];
  let store: () => void;
  let body: Buffer;
  const deliver = () => {
    steps.push('delivered');
    return Promise.resolve({ status: 202, headers: { 'content-type': 'application/json' }, body });
  };
  const executor = new HttpExecutor(
    { deliver } as unknown as HttpCalls,
    { applyEvents: () => Promise.resolve(void steps.push('remembered')) } as unknown as ReportApplier,
    { orderFor: () => ({ headers: {} }) } as unknown as WorkOrders,
    { base: 'http://gateway' } as PublicUrl,
    { warn } as unknown as Logger,
  );
  const agent = { name: 'svc' };
  const run = () =>
    ({
      ctx: {},
      agent,
      task: { id: 't', state: 'TASK_STATE_SUBMITTED', history: [{ role: 'ROLE_USER' }] },
      signal: new AbortController().signal,
      earlier: () => Promise.resolve([]),
      stored: () => new Promise<void>((resolve) => (store = resolve)),
    }) as unknown as TaskRun;

  beforeEach(() => {
    steps.length = 0;
    body = Buffer.alloc(0);
  });

  it('I1 remembers that the service has the message only after the change to working is stored', async () => {
    const updates = executor.execute(run());
    expect((await updates.next()).value).toEqual({ status: { state: 'TASK_STATE_WORKING' } });
    const next = updates.next();
    await new Promise(setImmediate);
    expect(steps).toEqual(['delivered']);
    store();
    expect((await next).value).toMatchObject({
      memo: { reached: 1, reachedAt: expect.any(Number) },
      deferred: { lookAgainMs: 300_000 },
    });
    expect(steps).toEqual(['delivered', 'remembered']);
  });

  it('says once for an agent that its service answers with a body without an event', async () => {
    for (const text of ['', '{"answer":42}', '{"answer":43}']) {
      body = Buffer.from(text);
      const updates = executor.execute(run());
      await updates.next();
      const next = updates.next();
      await new Promise(setImmediate);
      store();
      await next;
    }
    expect(warn.mock.calls).toEqual([
      [{ agent: 'svc', taskId: 't' }, expect.stringContaining('a body that has no event')],
    ]);
  });
});
