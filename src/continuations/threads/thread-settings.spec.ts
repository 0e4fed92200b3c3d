import { ThreadDeliverer } from './thread-deliverer.js';
import { ThreadPost } from './thread-post.js';

describe('(N14) AN-69 settings of threads', () => {
  it('waits for a receiver for A2A_CONTINUATION_SEND_TIMEOUT_MS', async () => {
    const requests: { deadlineMs: number }[] = [];
    const safeFetch = {
      beginning: (request: { deadlineMs: number }) => {
        requests.push(request);
        return Promise.resolve({ status: 200, headers: {}, body: Buffer.from('{}') });
      },
    };
    const post = new ThreadPost(safeFetch as never, { A2A_CONTINUATION_SEND_TIMEOUT_MS: 1_234 });
    await post.send({ url: 'https://a.example', mark: 'm', body: {} });
    expect(requests).toMatchObject([{ deadlineMs: 1_234 }]);
  });

  it.each([0, 2])(
    'retries to write a receipt %i times, as set in A2A_CONTINUATION_RECEIPT_RETRIES',
    async (retries) => {
      let writes = 0;
      const claimed = { id: 'a', task_id: 't', attempts: 0, receipt: null, payload: {} };
      const answers = {
        claim: () => Promise.resolve(claimed),
        deliver: () => Promise.resolve(true),
        addressOf: () => ({ url: 'https://a.example' }),
        keepReceipt: () => Promise.reject(new Error(`away ${++writes}`)),
      };
      const post = { send: () => Promise.resolve({ status: 200 }) };
      const log = { warn: () => undefined };
      const settings = { A2A_CONTINUATION_RECEIPT_RETRIES: retries };
      const tasks = { task: () => Promise.resolve(undefined) };
      const all = [answers, tasks, post, {}, log, settings] as unknown as ConstructorParameters<typeof ThreadDeliverer>;
      await expect(new ThreadDeliverer(...all).run('a')).rejects.toThrow(`away ${retries + 1}`);
      expect(writes).toBe(retries + 1);
    },
  );
});
