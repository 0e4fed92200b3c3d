import type { PublicUrl } from '../../platform/http/public-url.js';
import type { ReportApplier } from '../external/report-applier.js';
import type { WorkOrders } from '../external/work-orders.js';
import type { TaskRun } from '../executor.port.js';
import type { HttpCalls } from './http-calls.js';
import { HttpExecutor } from './http.executor.js';

it('I1 remembers that the service has the message only after the change to working is stored', async () => {
  const steps: string[] = [];
  let store = (): void => undefined;
  const executor = new HttpExecutor(
    {
      deliver: () => {
        steps.push('delivered');
        return Promise.resolve({ status: 202, headers: {}, body: Buffer.alloc(0) });
      },
    } as unknown as HttpCalls,
    { applyEvents: () => Promise.resolve(void steps.push('remembered')) } as unknown as ReportApplier,
    { orderFor: () => ({ headers: {} }) } as unknown as WorkOrders,
    { base: 'http://gateway' } as PublicUrl,
  );
  const run = {
    ctx: {},
    agent: { name: 'svc' },
    task: { id: 't', state: 'TASK_STATE_SUBMITTED', history: [{ role: 'ROLE_USER' }] },
    signal: new AbortController().signal,
    earlier: () => Promise.resolve([]),
    stored: () => new Promise<void>((resolve) => (store = resolve)),
  } as unknown as TaskRun;
  const updates = executor.execute(run);
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
