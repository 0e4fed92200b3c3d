import type { CallHandler, ExecutionContext } from '@nestjs/common';
import { lastValueFrom, of as valueOf } from 'rxjs';
import type { AnswerBudget } from './answer-budget.js';
import { LargeAnswers } from './large-answers.interceptor.js';
import { Shares } from './shares.js';

const limits = { principal: 10, org: 20, process: 30 };
const of = (principal: string, org = 'o') => ({ principal, org });

describe('Shares', () => {
  it('count for a principal, its org and the process, and are released', () => {
    const shares = new Shares(limits);
    const first = shares.takeShare(of('a'), 10)!;
    expect(shares.full(of('a'), 1)).toBe('principal');
    expect(shares.takeShare(of('a'), 1)).toBeUndefined();
    expect(shares.takeShare(of('b'), 5)).toBeDefined();
    expect(shares.full(of('c'), 6)).toBe('org');
    expect(shares.takeShare(of('a', 'p'), 10)).toBeDefined();
    expect(shares.full(of('c', 'q'), 6)).toBe('process');
    first();
    first();
    expect(shares.full(of('a'), 5)).toBeUndefined();
    expect(shares.full(of('a'), 16)).toBe('org');
  });

  it('leave something to the next, however many hold theirs', () => {
    const shares = new Shares({ principal: 6, org: 12, process: Infinity });
    const taken = ['a', 'b', 'c', 'd'].map((name) => {
      let pieces = 0;
      while (shares.takeShare(of(name), 1)) pieces++;
      return pieces;
    });
    expect(taken).toEqual([6, 3, 1, 1]);
  });

  it('are given to a single payer, also when the amount exceeds the limit', () => {
    const shares = new Shares(limits);
    const one = shares.takeShare(of('a'), 1_000)!;
    expect(shares.takeShare(of('b', 'p'), 1)).toBeUndefined();
    one();
    expect(shares.takeShare(of('b', 'p'), 1)).toBeDefined();
  });

  it('are given in the order of waiting, and a full principal does not delay others', () => {
    const shares = new Shares(limits);
    const release = shares.takeShare(of('a'), 10)!;
    const order: string[] = [];
    const waiting = (name: string, principal: string) =>
      shares.wait(of(principal), 3, (taken) => {
        order.push(name);
        void taken;
      });
    waiting('first', 'a');
    const second = waiting('second', 'a');
    waiting('third', 'a');
    second.leave();
    expect(shares.takeShare(of('b'), 5)).toBeDefined();
    release();
    expect(order).toEqual(['first', 'third']);
    expect(shares.full(of('a'), 3)).toBe('principal');
  });
});

describe('LargeAnswers', () => {
  it('write no answer for a caller that left while it waited', async () => {
    const answerTo = (leaves: boolean): Promise<unknown> => {
      const response = { destroyed: false };
      const waitForShare = () => Promise.resolve(void (response.destroyed = leaves));
      const context = { switchToHttp: () => ({ getResponse: () => response }) } as unknown as ExecutionContext;
      const handler: CallHandler<unknown> = { handle: () => valueOf('answer') };
      return lastValueFrom(new LargeAnswers({ waitForShare } as unknown as AnswerBudget).intercept(context, handler));
    };
    expect([await answerTo(false), await answerTo(true)]).toEqual(['answer', undefined]);
  });
});
