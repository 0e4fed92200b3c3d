import type { Message } from '../../protocol/a2a/model.js';
import { limitsOf, opening, questionOf, requestOf, saidBefore, tokensOf } from './llm-talk.js';

const config = { kind: 'llm', url: 'http://a/v1', model: 'm' } as const;
const messageOf = (text: string, role: Message['role'] = 'ROLE_USER'): Message => ({
  messageId: 'm',
  role,
  parts: [{ text }],
});

describe('the messages for a model', () => {
  it('are the system prompt, the earlier messages and the new message', () => {
    expect(opening({ ...config, system: 'Be kind.' }, [messageOf('hi'), messageOf('hello', 'ROLE_AGENT')])).toEqual([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'hello' },
    ]);
    expect(opening(config, [])).toEqual([]);
    expect(saidBefore({}, messageOf('go'))).toEqual([{ role: 'user', content: 'go' }]);
  });

  it('contain the answer to its question', () => {
    const before = { role: 'assistant', content: null } as const;
    const memo = { said: [before], asked: { turn: 0, callId: 'x', text: 'which?' } };
    expect(saidBefore(memo, messageOf('this'))).toEqual([before, { role: 'tool', tool_call_id: 'x', content: 'this' }]);
  });

  it('have the limits of the agent or the default ones, and always the tool ask_user', () => {
    expect(limitsOf(config)).toEqual({ maxSteps: 8, maxSeconds: 120, maxTokens: 4_096 });
    const request = requestOf({ ...config, temperature: 0 }, [], [], 10);
    expect(request).toMatchObject({ model: 'm', stream: true, max_tokens: 10, temperature: 0 });
    expect(request.tools).toMatchObject([{ function: { name: 'ask_user' } }]);
    expect(requestOf(config, [], [], 10)).not.toHaveProperty('temperature');
  });
});

describe('the answer of a model', () => {
  it('costs the tokens that the server counts, else an estimate from its length', () => {
    expect(tokensOf({ text: 'x', calls: [], tokens: 40 })).toBe(40);
    expect(tokensOf({ text: 'four', calls: [{ id: 'i', name: 'n', arguments: '{}1' }] })).toBe(2);
  });

  it('is a question, also with malformed arguments', () => {
    const asked = (text: string) => questionOf({ id: 'x', name: 'ask_user', arguments: text });
    expect(asked('{"question": "Which?"}')).toBe('Which?');
    for (const bad of ['{}', '{"question": 1}', 'Which?', '[]']) expect(asked(bad)).toBe('What else?');
  });
});
