import { ThreadDeliverer } from './thread-deliverer.js';
import { ThreadPost } from './thread-post.js';
import { ThreadSender } from './thread-sender.js';

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
      const claimed = { id: 'a', taskId: 't', attempts: 0, receipt: null, payload: {} };
      const answers = {
        claim: () => Promise.resolve(claimed),
        beginDelivery: () => Promise.resolve(true),
        openAddress: () => ({ url: 'https://a.example' }),
        keepReceipt: () => Promise.reject(new Error(`away ${++writes}`)),
      };
      const post = { send: () => Promise.resolve({ status: 200 }) };
      const log = { warn: () => undefined };
      const settings = { A2A_CONTINUATION_RECEIPT_RETRIES: retries };
      const tasks = { task: () => Promise.resolve(undefined) };
      const sender = new ThreadSender(answers as never, post as never, {} as never, log as never, settings);
      const deliverer = new ThreadDeliverer(answers as never, tasks as never, sender, log as never);
      await expect(deliverer.deliver('a')).rejects.toThrow(`away ${retries + 1}`);
      expect(writes).toBe(retries + 1);
    },
  );
});
