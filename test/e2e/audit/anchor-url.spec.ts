import { createPublicKey, verify as verifies } from 'node:crypto';
import { AuditAnchor } from '../../../src/audit/anchors/audit-anchor.js';
import { AuditCheckpoints } from '../../../src/audit/audit-checkpoints.js';
import { canonicalJson } from '../../../src/kernel/canonical-json.js';
import { Metrics } from '../../../src/platform/telemetry/metrics.js';
import { tampered } from '../../support/gateway/audit-tables.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

describe('an anchor that receives checkpoints by POST', () => {
  let sink: WebhookSink;
  let gateway: TestGateway;
  let env: Record<string, string>;
  let token: string;
  let globex: string;

  beforeAll(async () => {
    sink = await startWebhookSink();
    env = { RIALTO_ROLE: 'api', RIALTO_AUDIT_ANCHOR_URL: `${sink.url}/anchor?key=canary-of-an-anchor` };
    gateway = await startTestGateway(env);
    token = await gateway.tokenOf('globex', 'gina', 'admin');
    [{ id: globex }] = (await gateway.sql(`select id from orgs where slug = 'globex'`)) as [{ id: string }];
  });
  afterAll(async () => {
    await gateway.close();
    await sink.close();
  });

  const act = async (name: string, of?: string): Promise<void> => {
    expect((await gateway.call('POST', '/api/keys', { name, role: 'viewer' }, of)).status).toBe(201);
    await gateway.call('POST', '/api/audit/verify', undefined, of);
    await gateway.gateway.get(AuditCheckpoints).sweep();
  };
  const deliver = (at = gateway) => at.gateway.get(AuditAnchor).sweep();
  const checkpointsOf = (org: string) => sink.received.map(({ body }) => body).filter(({ orgId }) => orgId === org);
  const readiness = async (at = gateway) => (await at.call('GET', '/readyz', undefined, null)).body.checks.anchor;
  const waiting = async (): Promise<number> => {
    const text = await gateway.gateway.get(Metrics).registry.metrics();
    return Number(/^rialto_due\{kind="anchor"\} (\d+)$/m.exec(text)![1]);
  };

  it('has no checkpoint while it is down, and all when it is back, also after a restart of the gateway', async () => {
    sink.script([503], true);
    for (const name of ['a', 'b', 'c']) await act(name, token);
    await deliver();
    expect(await gateway.sql('select from audit_anchors')).toEqual([]);
    expect(gateway.log.join('')).toContain('an anchor of the audit cannot be reached');
    await eventually(waiting, (count) => count >= 3);

    sink.script([200], true);
    sink.received.length = 0;
    const later = await startTestGateway(env, gateway);
    await deliver(later);
    await later.close();
    expect(checkpointsOf(globex).map(({ number }) => number)).toEqual([1, 2, 3]);
    await eventually(waiting, (count) => count === 0); // metric requests within half a second share an answer
    await deliver();
    expect(checkpointsOf(globex)).toHaveLength(3);
  });

  it('gets checkpoints that the public keys of the gateway verify', async () => {
    const { keys } = (await gateway.call('GET', '/.well-known/jwks.json', undefined, null)).body;
    const [{ kid, signature, ...statement }] = checkpointsOf(globex);
    const key = createPublicKey({ key: keys.find((one: { kid: string }) => one.kid === kid), format: 'jwk' });
    const check = (of: object) =>
      verifies(null, Buffer.from(canonicalJson(of)), key, Buffer.from(signature, 'base64url'));
    expect([check(statement), check({ ...statement, number: 2 })]).toEqual([true, false]);
    expect(sink.received[0]!.headers['content-type']).toBe('application/json');
  });

  it('that refuses a checkpoint of one org gets those of the others', async () => {
    sink.received.length = 0;
    await act('of globex', token);
    await act('of default');
    sink.script([422, 200]);
    await deliver();
    const [refused, taken] = sink.received.map(({ body }) => body.orgId);
    expect(taken).not.toBe(refused);
    sink.received.length = 0;
    await deliver();
    expect(sink.received.map(({ body }) => body.orgId)).toEqual([refused]);
  });

  it('that is down for long makes the gateway degraded, and its address is not shown', async () => {
    expect(await readiness()).toEqual({ status: 'ok' });
    const aged = [
      `insert into audit_checkpoints (org_id, number, sequence, hash, kid, signature, at)
       values ('${globex}', 1000, 1, '', '', '', now() - interval '65 minutes')`,
    ];
    await tampered(gateway, aged, async () => {
      const later = await startTestGateway(env, gateway);
      const detail = expect.stringMatching(
        /^checkpoints of the audit have waited for their anchor for 6[5-9] minutes$/,
      );
      expect(await readiness(later)).toEqual({ status: 'degraded', detail });
      await later.close();
    });
    expect(gateway.log.join('')).not.toContain('canary-of-an-anchor');
  });
});
