import { weigh, type Standing } from './weight.js';

const standing = (more: Partial<Standing> = {}): Standing => ({ health: 'healthy', active: 0, ...more });

describe('the weight of an agent', () => {
  it.each([
    ['healthy', { ok: true, factors: { health: 1, load: 1, cost: 1 } }],
    ['unknown', { ok: true, factors: { health: 0.8, load: 1, cost: 1 } }],
    ['degraded', { ok: true, factors: { health: 0.5, load: 1, cost: 1 } }],
    ['unreachable', { ok: false, reason: 'it is unreachable' }],
  ] as const)('RE-67 that is %s', (health, expected) => {
    expect(weigh(standing({ health }))).toEqual(expected);
  });

  it.each([
    [0, 1],
    [4, 1],
    [5, 0.5],
    [9, 0.5],
    [10, undefined],
    [4_000, undefined],
  ])('RE-68 with %i calls running', (active, load) => {
    const weight = weigh(standing({ active }));
    expect(weight.ok ? weight.factors.load : undefined).toBe(load);
    if (!weight.ok) expect(weight.reason).toBe(`it has ${active} running calls; the maximum is 10`);
  });

  it.each([
    ['no price, no limit', undefined, undefined, 1],
    ['a price, no limit', 1_000, undefined, 1],
    ['no price, a limit of zero', undefined, 0, 1],
    ['free, under a limit', 0, 10, 1],
    ['half of the limit', 5, 10, 0.75],
    ['the limit itself', 10, 10, 0.5],
    ['beyond the limit', 10.01, 10, undefined],
    ['any price beyond a limit of zero', 0.001, 0, undefined],
  ])('RE-70 %s', (_what, costPerTask, costLimit, cost) => {
    const weight = weigh(standing({ costPerTask }), costLimit);
    expect(weight.ok ? weight.factors.cost : undefined).toBe(cost);
    if (!weight.ok) expect(weight.reason).toBe(`a task costs ${costPerTask}, the limit is ${costLimit}`);
  });
});
