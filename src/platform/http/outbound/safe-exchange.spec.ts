import { getEventListeners, getMaxListeners } from 'node:events';
import { ExchangeDeadline } from './safe-exchange.js';

it('any number of exchanges listen to one signal, and each removes its listener', () => {
  const { signal } = new AbortController();
  const all = Array.from({ length: 50 }, () => new ExchangeDeadline(60_000, [signal]));
  expect([getEventListeners(signal, 'abort').length, getMaxListeners(signal)]).toEqual([50, Infinity]);
  for (const one of all) one.release();
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
