import { RialtoError } from '../../kernel/errors.js';
import type { TaskLogService } from '../../tasks/task-log.service.js';
import type { DeliveryStore, Claimed } from './delivery.store.js';
import type { DeliveryWatch } from './delivery-watch.js';
import type { AdmittedPost } from './admitted-post.js';
import type { DeliveryOutcomeStore } from './delivery-outcome.store.js';
import { PostBuilder } from './post-builder.js';
import type { PushConfigStore } from '../configs/push-config.store.js';
import { WebhookDeliverer } from './webhook-deliverer.js';
import { statementError } from '../../platform/database/outage.js';
import type { WebhookSecretStore } from '../configs/webhook-secret.store.js';

const key = { taskId: 't', configId: 'c' };
const due = (seq: number, more: Partial<Claimed> = {}): Claimed =>
  ({
    delivery: `d${seq}`,
    seq,
    attempts: 1,
    earlierAttempts: 0,
    body: '{}',
    state: 'active',
    format: 'v1',
    secrets: [],
    ...more,
  }) as Claimed;

/** @param claims the results of the claims, in turn. @param nexts the same for the ends of deliveries. */
function start(claims: (Claimed | undefined)[], nexts: (Claimed | undefined)[] = []) {
  const steps: string[] = [];
  const record = <Answer>(step: string, answer: Answer) => (steps.push(step), Promise.resolve(answer));
  const deliveries = {
    claim: () => record('claim', claims.shift()),
    delivered: ({ seq }: Claimed, _tried: unknown, claimNext: boolean) =>
      record(claimNext ? `end ${seq}` : `end ${seq} alone`, claimNext ? nexts.shift() : undefined),
    defer: ({ seq }: Claimed, inMs: number) => record(`defer ${seq} for ${inMs}`, 'later'),
  } as unknown as DeliveryStore;
  const outcomes = {
    recovered: ({ seq }: Claimed) => record(`recovered ${seq}`, true),
  } as unknown as DeliveryOutcomeStore;
  const post = {
    send: ({ seq }: Claimed) => record(`post ${seq}`, { kind: 'posted', status: 200, durationMs: 1 }),
  } as unknown as AdmittedPost;
  const configs = { openConfig: () => ({}) } as unknown as PushConfigStore;
  const watch = {
    eventsOf: () => ({ events: [], rows: [] }),
    countEvents: () => undefined,
    reportEnd: () => undefined,
  };
  const deliverer = new WebhookDeliverer(
    deliveries,
    outcomes,
    new PostBuilder(configs, {} as WebhookSecretStore, {} as TaskLogService),
    post,
    watch as unknown as DeliveryWatch,
  );
  return { deliverer, steps, post };
}

describe('WebhookDeliverer', () => {
  it('continues with the delivery that was claimed with the end of the previous one', async () => {
    const { deliverer, steps } = start([due(1)], [due(2), due(3)]);
    expect(await deliverer.deliverDue(key)).toEqual({ delivered: 3 });
    expect(steps).toEqual(['claim', 'post 1', 'end 1', 'post 2', 'end 2', 'post 3', 'end 3', 'claim']);
  });

  it('claims once more when an end brought no delivery: the job of a new one may have been lost', async () => {
    const { deliverer, steps } = start([due(1), due(2)]);
    expect(await deliverer.deliverDue(key)).toEqual({ delivered: 2 });
    expect(steps).toEqual(['claim', 'post 1', 'end 1', 'claim', 'post 2', 'end 2', 'claim']);
  });

  it('continues behind the first delivery that succeeds again', async () => {
    const { deliverer, steps } = start([due(1, { state: 'failing' }), due(2)]);
    expect(await deliverer.deliverDue(key)).toEqual({ delivered: 2 });
    expect(steps).toEqual(['claim', 'post 1', 'recovered 1', 'claim', 'post 2', 'end 2', 'claim']);
  });

  it('stops after 200 in a row, and claims no delivery that it does not post', async () => {
    const all = Array.from({ length: 300 }, (_, index) => due(index + 1));
    const { deliverer, steps } = start([all[0]], all.slice(1));
    expect(await deliverer.deliverDue(key)).toEqual({ delivered: 200, againMs: 0 });
    expect(steps.at(-1)).toBe('end 200 alone');
  });

  it('claims nothing more once it stops', async () => {
    const { deliverer, steps } = start([due(1), due(2)], [due(2)]);
    const run = deliverer.deliverDue(key);
    deliverer.onModuleDestroy();
    expect(await run).toEqual({ delivered: 1 });
    expect(steps).toEqual(['claim', 'post 1', 'end 1 alone']);
  });

  it('counts no attempt when the database of the gateway prevented it (R1)', async () => {
    const { deliverer, steps, post } = start([due(1)]);
    const cause = Object.assign(new Error('terminating connection'), { code: '57P01' });
    post.send = () => Promise.reject(RialtoError.from(statementError(cause)));
    expect(await deliverer.deliverDue(key)).toEqual({ delivered: 0, deferred: 'database', againMs: 1_000 });
    expect(steps).toEqual(['claim', 'defer 1 for 1000']);
  });
});
