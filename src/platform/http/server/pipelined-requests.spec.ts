import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PipelinedRequests } from './pipelined-requests.js';

describe('PipelinedRequests', () => {
  const connection = (requests: PipelinedRequests, served: string[], name: string) => {
    const socket = {};
    return (number: number) => {
      const response = new EventEmitter();
      requests.serve({ socket } as IncomingMessage, response as unknown as ServerResponse, () => {
        served.push(`${name}${number}`);
      });
      return () => response.emit('close');
    };
  };

  it('serves a request at once when the earlier ones of its connection are answered', () => {
    const served: string[] = [];
    const requests = new PipelinedRequests();
    const [one, other] = [connection(requests, served, 'a'), connection(requests, served, 'b')];
    one(1)();
    one(2);
    other(1);
    expect(served).toEqual(['a1', 'a2', 'b1']);
  });

  it('serves at most 20 pipelined ones in a turn, in their order', async () => {
    const served: string[] = [];
    const requests = new PipelinedRequests();
    const [one, other] = [connection(requests, served, 'a'), connection(requests, served, 'b')];
    for (let number = 1; number <= 30; number++) one(number);
    for (let number = 1; number <= 30; number++) other(number);
    const counts = [served.length];
    while (served.length < 60) {
      await nextTurn();
      counts.push(served.length);
    }
    expect(counts).toEqual([2, 22, 42, 60]);
    const numbers = Array.from({ length: 30 }, (_, index) => index + 1);
    for (const name of ['a', 'b'])
      expect(served.filter((text) => text.startsWith(name))).toEqual(numbers.map((number) => `${name}${number}`));
  });
});
