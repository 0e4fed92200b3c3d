import { lastValueFrom, of } from 'rxjs';
import { LargeAnswers } from './large-answers.interceptor.js';

describe('LargeAnswers', () => {
  const answerTo = async (value: unknown) => {
    const headers: Record<string, string> = {};
    const response = { destroyed: false, setHeader: (name: string, text: string) => void (headers[name] = text) };
    const budget = { waitForShare: () => Promise.resolve() };
    const context = { switchToHttp: () => ({ getResponse: () => response }) };
    const answer = new LargeAnswers(budget as never).intercept(context as never, { handle: () => of(value) });
    return { value: await lastValueFrom(answer), headers };
  };

  it('writes a long object as JSON', async () => {
    const value = { a: 'x'.repeat(70_000), b: undefined, c: [1n] };
    expect(await answerTo(value)).toEqual({
      value: JSON.stringify(value),
      headers: { 'Content-Type': 'application/json; charset=utf-8' },
    });
  });

  it.each([
    ['a short object', { a: 1 }],
    ['a long text', 'x'.repeat(70_000)],
    ['nothing', undefined],
  ])('leaves %s as it is', async (_, value) => {
    const answer = await answerTo(value);
    expect(answer.value).toBe(value);
    expect(answer.headers).toEqual({});
  });
});
