import { Readable } from 'node:stream';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import type { SafeFetch, SafeStream } from '../../platform/http/outbound/safe-fetch.js';
import { createLogger } from '../../platform/telemetry/logger.js';
import type { ExecutorSecrets } from '../../registry/executor-secrets.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { ModelClient } from './model-client.js';

/** Returns the text of a model server that answers so. */
async function textFrom(stream: () => Promise<SafeStream>): Promise<string> {
  const secretsOf = () => Promise.resolve({ url: 'http://model.internal/v1' });
  const client = new ModelClient(
    { stream } as unknown as SafeFetch,
    { secretsOf } as unknown as ExecutorSecrets,
    createLogger('silent'),
  );
  const agent = { id: 'a', name: 'a' } as unknown as PublishedAgent;
  const call = { agent, request: {}, until: systemClock.elapsed() + 10_000, signal: new AbortController().signal };
  let text = '';
  for await (const piece of client.complete(call)) text += piece;
  return text;
}

/** Returns the text of an answer of `size` bytes in chunks of one byte. */
async function textOf(size: number): Promise<string> {
  const answer = JSON.stringify({ choices: [{ message: { content: 'hello' }, finish_reason: 'stop' }] }).padEnd(size);
  const body = Readable.from([...Buffer.from(answer)].map((byte) => Buffer.from([byte])));
  const headers = { 'content-type': 'application/json' };
  const text = await textFrom(() => Promise.resolve({ status: 200, headers, body } as unknown as SafeStream));
  expect(body.destroyed).toBe(true);
  return text;
}

describe('ModelClient', () => {
  it('accepts an answer in 10,000 chunks of one byte, and refuses more', async () => {
    expect(await textOf(10_000)).toBe('hello');
    await expect(textOf(10_001)).rejects.toMatchObject({ code: 'remote_invalid_response' });
  });

  it('says why a model server was not reached, without its address', async () => {
    const cause = Object.assign(new Error('getaddrinfo ENOTFOUND model.internal'), { code: 'ENOTFOUND' });
    await expect(textFrom(() => Promise.reject(new RialtoError('remote_transport', { cause })))).rejects.toMatchObject({
      code: 'remote_transport',
      message: 'the model server sent no complete answer: its host name is unknown',
    });
  });
});
