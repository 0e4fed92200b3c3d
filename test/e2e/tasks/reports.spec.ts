import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

describe('a worker that reports a task in many pieces', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway, { name: 'box', executor: { kind: 'mailbox' } });
  });
  afterAll(() => gateway.close());

  const leased = async () => {
    const params = { message: userMessage('write'), configuration: { returnImmediately: true } };
    const { task } = await rpc(gateway, 'SendMessage', params, { agent: 'box' });
    const { body } = await gateway.call('POST', '/api/mailbox/box/lease');
    return { id: task.id as string, token: body.token as string, leaseEpoch: body.leaseEpoch as number };
  };
  const report = ({ id, token }: { id: string; token: string }, events: object, at = gateway) =>
    at.call('POST', `/api/executions/${id}/events`, events, token);
  const chunk = ({ leaseEpoch }: { leaseEpoch: number }, n: number) => ({
    ...{ id: `chunk-${n}`, leaseEpoch, type: 'artifact', append: n > 0 },
    artifact: { artifactId: 'text', parts: [{ text: `word ${n} ` }] },
  });
  const textsOf = async (id: string): Promise<string[]> => {
    const { artifacts } = await rpc(gateway, 'GetTask', { id }, { agent: 'box' });
    return artifacts[0].parts.map((part: { text: string }) => part.text);
  };
  const words = (count: number) => Array.from({ length: count }, (_, n) => `word ${n} `);

  it('(G1) is recognised by each of a thousand ids, and seldom writes again what it said before', async () => {
    const task = await leased();
    const folded = new Set<number>();
    for (let n = 0; n < 1_100; n += 20) {
      const batch = Array.from({ length: 20 }, (_, index) => chunk(task, n + index));
      expect((await report(task, batch)).status).toBe(200);
      const [stored] = await gateway.sql('select folded_seq, memo from a2a_tasks where id = $1', [task.id]);
      expect(stored.memo).toBeNull();
      folded.add(stored.folded_seq);
    }
    // The artifacts were written again only when the log had doubled.
    expect(folded.size).toBeLessThan(9);
    expect(await textsOf(task.id)).toEqual(words(1_100));
    for (const n of [0, 17, 1_099]) expect((await report(task, chunk(task, n))).status).toBe(200);
    expect(await textsOf(task.id)).toEqual(words(1_100));
    await report(task, { id: 'end', leaseEpoch: task.leaseEpoch, type: 'complete' });
    expect(await textsOf(task.id)).toEqual(words(1_100));
  });

  it('(G1) may change processes between two pieces, and after an end none of them accepts more', async () => {
    const beside = await startTestGateway({}, gateway);
    const task = await leased();
    const at = [gateway, gateway, beside, beside, gateway, beside, gateway];
    for (const [n, one] of at.entries()) expect((await report(task, chunk(task, n), one)).status).toBe(200);
    expect((await report(task, chunk(task, 2))).status).toBe(200);
    expect(await textsOf(task.id)).toEqual(words(at.length));
    await rpc(gateway, 'CancelTask', { id: task.id }, { agent: 'box' });
    for (const one of [gateway, beside]) expect((await report(task, chunk(task, 9), one)).status).toBe(409);
    await beside.close();
  });
});
