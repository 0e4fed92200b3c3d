import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

describe('the webhooks of another caller of the org', () => {
  let gateway: TestGateway;
  let sink: WebhookSink;
  let [alice, mallory, viewer]: string[] = [];
  let taskId: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    sink = await startWebhookSink();
    await publish(gateway);
    alice = await gateway.tokenOf('default', 'alice');
    mallory = await gateway.tokenOf('default', 'mallory');
    viewer = await gateway.tokenOf('default', 'vera', 'viewer');
    const configuration = { taskPushNotificationConfig: { id: 'hook', url: sink.url } };
    const params = { message: userMessage('canary-of-alice'), configuration };
    taskId = (await rpc(gateway, 'SendMessage', params, { token: alice })).task.id;
    await eventually(
      () => gateway.sql(`select from webhook_deliveries where task_id = $1 and status = 'delivered'`, [taskId]),
      ({ length }) => length === 3,
    );
  });
  afterAll(async () => {
    await gateway.close();
    await sink.close();
  });

  const read = (path: string, token?: string) => gateway.call('GET', `/api/webhooks/${path}`, undefined, token);
  const lists = async (token?: string) => ({
    deliveries: (await read('deliveries', token)).body.items.length,
    ofTask: (await read(`deliveries?taskId=${taskId}`, token)).body.items.length,
    configs: (await read('configs', token)).body.items.length,
    counted: (await read('deliveries/summary', token)).body.counts.delivered,
  });

  it('are invisible to members and viewers; admins see all, and each caller its own', async () => {
    const all = { deliveries: 3, ofTask: 3, configs: 1, counted: 3 };
    const none = { deliveries: 0, ofTask: 0, configs: 0, counted: 0 };
    expect(await lists()).toEqual(all);
    expect(await lists(alice)).toEqual(all);
    for (const token of [mallory, viewer]) expect(await lists(token)).toEqual(none);
    const { id } = (await read('deliveries')).body.items[0];
    for (const path of [`deliveries/${id}`, `configs/${taskId}/hook`]) {
      for (const token of [undefined, alice]) expect((await read(path, token)).status).toBe(200);
      for (const token of [mallory, viewer]) {
        const { status, body } = await read(path, token);
        expect([status, body.code]).toEqual([404, 'not_found']);
      }
    }
  });
});
