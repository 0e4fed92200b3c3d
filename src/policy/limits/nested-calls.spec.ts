import { NestedCalls } from './nested-calls.js';

describe('NestedCalls', () => {
  it('abuse 37 limits calls that began one after the other, and accepts the next one when one is answered', () => {
    const calls = new NestedCalls(3);
    const leave = [0, 100, 200].map((now) => calls.countNestedCall('a', now)!);
    expect(calls.countNestedCall('a', 300)).toBeUndefined();
    leave[1]!();
    expect(calls.countNestedCall('a', 400)).toBeDefined();
    expect(calls.countNestedCall('a', 500)).toBeUndefined();
  });

  it('counts parallel calls once, until the last of them is answered', () => {
    const calls = new NestedCalls(2);
    const first = Array.from({ length: 100 }, () => calls.countNestedCall('a', 5)!);
    const second = calls.countNestedCall('a', 100)!;
    expect(calls.countNestedCall('a', 200)).toBeUndefined();
    for (const leave of first.slice(1)) leave();
    expect(calls.countNestedCall('a', 200)).toBeUndefined();
    first[0]!();
    expect(calls.countNestedCall('a', 200)).toBeDefined();
    second();
  });

  it('counts each caller and agent separately', () => {
    const calls = new NestedCalls(1);
    expect(calls.countNestedCall('a', 0)).toBeDefined();
    expect(calls.countNestedCall('b', 0)).toBeDefined();
    expect(calls.countNestedCall('a', 100)).toBeUndefined();
  });
});
