import { RialtoError } from '../../kernel/errors.js';
import { type Settings } from '../../platform/config/settings.js';
import type { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import type { Logger } from '../../platform/telemetry/logger.js';
import type { ExecutorSecrets } from '../../registry/executor-secrets.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { HttpCalls } from './http-calls.js';

describe('calls of the service of an agent', () => {
  it('say why the service was not reached, without its address', async () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED 10.1.2.3:80'), { code: 'ECONNREFUSED' });
    const request = () => Promise.reject(new RialtoError('remote_transport', { cause }));
    const secretsOf = () => Promise.resolve({ secret: { reveal: () => 'whsec_c2VjcmV0' }, url: 'http://10.1.2.3/' });
    const logged: unknown[] = [];
    const calls = new HttpCalls(
      { request } as unknown as SafeFetch,
      { secretsOf } as unknown as ExecutorSecrets,
      { RIALTO_MAX_BODY_BYTES: 1_000 } as Settings,
      { warn: (facts: { why: string }) => logged.push(facts.why) } as unknown as Logger,
    );
    const call = { id: 'c-1', body: '{}', headers: {}, givenUp: AbortSignal.abort() };
    await expect(calls.deliver({ id: 'a-1', name: 'own' } as PublishedAgent, call)).rejects.toThrow('aborted');
    expect(logged).toEqual(['the service could not be reached: the connection was refused']);
  });
});
