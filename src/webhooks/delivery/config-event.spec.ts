import { configEventsOf } from './config-event.js';
import type { Verdict } from './retry-plan.js';

const [delivered, retry, dead, closed]: Verdict[] = [
  { kind: 'delivered' },
  { kind: 'retry', inMs: 1 },
  { kind: 'dead' },
  { kind: 'closed', reason: 'gone' },
];

describe('the events of a configuration', () => {
  it.each([
    ['active', delivered!, []],
    ['failing', delivered!, ['recovered']],
    ['active', retry!, ['failing']],
    ['failing', retry!, []],
    ['active', dead!, ['failing', 'exhausted']],
    ['failing', dead!, ['exhausted']],
    ['active', closed!, ['disabled']],
    ['failing', closed!, ['disabled']],
  ] as const)('%s and %j: %j', (state, verdict, events) => {
    expect(configEventsOf(state, verdict)).toEqual(events);
  });
});
