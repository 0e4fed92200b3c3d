import { lessDemanding, pauseBefore } from './model-retry.js';

const now = Date.parse('2026-01-01T00:00:00Z');
const time = { now, leftMs: 60_000 };

describe('the pause before the next request to a model', () => {
  it('grows, and there is none after the third try', () => {
    expect([1, 2, 3, 4].map((attempt) => pauseBefore(attempt, { status: 503 }, time))).toEqual([
      500,
      2_000,
      5_000,
      undefined,
    ]);
  });

  it.each([
    [{ status: 429, retryAfter: '3' }, 3_000],
    [{ status: 429, retryAfter: new Date(now + 9_000).toUTCString() }, 9_000],
    [{ status: 429, retryAfter: '60' }, undefined],
    [{ status: 500 }, 500],
    [{}, 500],
    [{ status: 400 }, undefined],
    [{ status: 401, retryAfter: '1' }, undefined],
  ])('after %j', (end, pause) => expect(pauseBefore(1, end, time)).toBe(pause));

  it('is not longer than the time left', () => {
    expect(pauseBefore(2, { status: 503 }, { now, leftMs: 1_999 })).toBeUndefined();
  });
});

describe('a reduced request', () => {
  const all = {
    model: 'm',
    max_tokens: 9,
    stream: true,
    stream_options: { include_usage: true },
    tools: [],
    temperature: 1,
  };

  it.each([
    ['Use max_completion_tokens instead', { max_tokens: undefined, max_completion_tokens: 9 }],
    ['unknown field "stream_options"', { stream_options: undefined }],
    ['streaming is not supported', { stream: undefined, stream_options: undefined }],
    ['m does not support tools', { tools: undefined }],
    ['temperature must be 1', { temperature: undefined }],
  ])('follows the refusal: %s', (refusalText, change) => {
    const wanted = Object.fromEntries(Object.entries({ ...all, ...change }).filter(([, value]) => value !== undefined));
    expect(lessDemanding(all, 400, refusalText)).toEqual(wanted);
  });

  it('does not exist for other refusals, or when the refused member is missing', () => {
    expect(lessDemanding(all, 400, 'the context is too long')).toBeUndefined();
    expect(lessDemanding(all, 401, 'tools')).toBeUndefined();
    expect(lessDemanding({ model: 'm' }, 400, 'stream tools temperature max_completion_tokens')).toBeUndefined();
  });
});
