import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

describe('the port in a handle', () => {
  let gateway: TestGateway;
  let globex: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    globex = await gateway.tokenOf('globex', 'gina', 'admin');
  });
  afterAll(() => gateway.close());

  const publish = (name: string, handle: string, token?: string) => {
    const agent = { name, handle, description: 'Answers.', executor: { kind: 'echo' }, a2a_enabled: true };
    return gateway.call('POST', '/api/a2a/published', agent, token);
  };
  const get = (path: string) => gateway.call('GET', path, undefined, null);

  it('N10 does not hide the owner of the host', async () => {
    const handle = 'bot@gamma.example:443';
    expect((await publish('squatter', handle, globex)).status).toBe(201);
    await gateway.call('PUT', '/api/orgs/default/domains', { domains: ['gamma.example'] });
    expect((await publish('owner', handle)).status).toBe(201);
    const { body } = await eventually(
      () => get(`/a2a/${handle}/agent.json`),
      (card) => card.body.name === 'owner',
    );
    expect(body.capabilities.extensions[0].params).toEqual({ trustTier: 3, handle, verified: true });
    for (const host of ['gamma.example', 'default']) {
      const foreign = await publish('third', `other@${host}:8443`, globex);
      expect([foreign.status, foreign.body.detail]).toEqual([409, `handle: "${host}" belongs to another org`]);
    }
  });

  it('RI-50 leads to the handle without it, and to this gateway', async () => {
    await publish('clerk', 'desk@gamma.example');
    expect((await publish('here', 'front@127.0.0.1:1')).body.handle).toBe('front');
    for (const [called, name] of [
      ['desk@gamma.example', 'clerk'],
      ['desk@gamma.example:443', 'clerk'],
      ['front@127.0.0.1:1', 'here'],
    ]) {
      const { status, body } = await get(`/.well-known/webfinger?resource=acct:${called}`);
      expect([status, body.aliases]).toEqual([200, [`${gateway.url}/a2a/agents/${name}`]]);
    }
  });
});
