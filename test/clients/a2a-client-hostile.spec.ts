import { closeOpened, fails, stub as anyStub } from '../support/clients/bridge.js';
import type { StubAgentOptions } from '../support/stubs/stub-agent.js';
import type { Behaviour } from '../support/stubs/stub-call.js';
import * as hostile from '../support/stubs/stub-hostile.js';

afterEach(closeOpened);

const stub = (options: StubAgentOptions = {}) => anyStub({ card: 'v03', ...options });

describe('hostile agents', () => {
  it.each([301, 302, 303, 307, 308] as const)('abuse 22, RE-28: a %i is not followed', async (status) => {
    const [agent, canary] = [await stub(), await stub()];
    agent.set(hostile.redirect(status, canary.url));
    const error = await fails(agent);
    expect([error.code, error.data?.httpStatus]).toEqual(['remote_transport', status]);
    expect([agent.requests.length, canary.requests.length]).toEqual([1, 0]);
  });

  it.each([400, 401, 403, 408, 410, 429, 500, 502, 503, 504])(
    'RE-28, F31: a %i is reported with its status and not retried',
    async (status) => {
      const agent = await stub({ behaviour: hostile.http(status, { error: 'no' }, { 'retry-after': '1' }) });
      const error = await fails(agent);
      expect([error.code, error.data?.httpStatus]).toEqual(['remote_transport', status]);
      expect(agent.requests).toHaveLength(1);
    },
  );

  it('RE-28 an agent that is down', async () => {
    const agent = await stub();
    await agent.down();
    const error = await fails(agent);
    expect(error.code).toBe('remote_transport');
    expect(`${error.message} ${JSON.stringify(error.data)}`).not.toMatch(/ECONN|127\.0/);
  });

  it.each([
    ['reset at once', hostile.resetAtOnce],
    ['reset in the body', hostile.resetMidBody],
    ['half close', hostile.halfClose],
  ])('RE-28, F28: %s', async (_name, behaviour) => {
    const agent = await stub({ behaviour });
    expect((await fails(agent)).code).toBe('remote_transport');
    expect(agent.requests).toHaveLength(1);
  });

  // Only a later poll can detect these two, so they are not tested here.
  const spoilt = hostile.wrongEnvelopeKinds.filter(
    (kind) => !['unknown-state', 'task-of-another-request'].includes(kind),
  );
  const answers: [string, Behaviour][] = spoilt.map((kind) => [kind, hostile.wrongEnvelope(kind)]);
  it.each([['html', hostile.html()], ['{}', hostile.emptyObject], ...answers] as [string, Behaviour][])(
    'RE-29, F29: %s',
    async (_kind, behaviour) => {
      const error = await fails(await stub({ behaviour }));
      expect(['remote_invalid_response', 'remote_error']).toContain(error.code);
    },
  );

  it('RE-25, RE-27, F27: an agent that never answers', async () => {
    const agent = await stub({ behaviour: hostile.hang });
    const patient = new AbortController();
    const other = fails(agent, { timeoutMs: 20_000, signal: patient.signal });
    expect((await fails(agent, { timeoutMs: 1_000 })).code).toBe('remote_timeout');
    expect(await agent.closed()).toHaveLength(1);
    patient.abort();
    // It did not time out: the first call had ended while this one had time left.
    expect((await other).code).toBe('canceled');
  });

  it('abuse 25, F30: a slow answer is stopped at the deadline, a huge one at its size', async () => {
    const dripping = await stub({ behaviour: hostile.drip() });
    expect((await fails(dripping, { timeoutMs: 400 })).code).toBe('remote_timeout');
    for (const declareLength of [true, false]) {
      const huge = await stub({ behaviour: hostile.huge(64 * 1_048_576, { declareLength }) });
      expect((await fails(huge)).code).toBe('remote_invalid_response');
    }
    expect((await fails(await stub({ behaviour: hostile.manyHeaders(2_000) }))).code).toBe('remote_invalid_response');
  });

  it('abuse 24, F30: a decompression bomb is stopped while it is decompressed', async () => {
    for (const coding of ['gzip', 'br', 'deflate'] as const) {
      const agent = await stub({ behaviour: hostile.gzipBomb(64 * 1_048_576, coding) });
      expect((await fails(agent)).code).toBe('remote_invalid_response');
    }
  });
});
