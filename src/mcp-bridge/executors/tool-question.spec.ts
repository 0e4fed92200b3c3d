import type { Message } from '../../protocol/a2a/model.js';
import { answersIn, answersTo, asking, askingAll, questionIn } from './tool-question.js';

const call = { tool: 'book', args: { room: 1 }, turn: 0 };
const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const form = { method: 'elicitation/create', params: { message: 'For whom?', requestedSchema } };
const question = { ...call, name: 'who', text: 'For whom?', schema: requestedSchema, requestState: 's' };
const messageOf = (text: string): Message => ({ messageId: 'm', role: 'ROLE_USER', parts: [{ text }] });

describe('a question of a tool before its answer', () => {
  it('is one form', () => {
    expect(questionIn({ inputRequests: { who: form }, requestState: 's' }, call)).toEqual(question);
    expect(asking(question, 'not so')).toEqual({
      status: {
        state: 'TASK_STATE_INPUT_REQUIRED',
        message: { parts: [{ text: 'For whom?\n\n(not so)' }], metadata: { kind: 'form', requestedSchema } },
      },
    });
  });

  it('may be absent: the call is only deferred', () => {
    expect(questionIn({ requestState: 's' }, call)).toBeUndefined();
  });

  it.each([
    ['several', { one: form, two: form }, /several/],
    ['a sample', { one: { method: 'sampling/createMessage', params: {} } }, /sample of a model/],
    ['roots', { one: { method: 'roots/list' } }, /roots/],
    ['a page', { one: { method: 'elicitation/create', params: { mode: 'url', url: 'https://a' } } }, /page/],
  ])('is refused when the caller cannot answer it: %s', (_what, inputRequests, why) => {
    expect(() => questionIn({ inputRequests }, call)).toThrow(why);
  });

  it('is answered by a completed form, or by a refusal', () => {
    const answer = (response: object) => ({ answers: { inputResponses: { who: response }, requestState: 's' } });
    expect(answersIn(messageOf('Ada'), question)).toEqual(answer({ action: 'accept', content: { name: 'Ada' } }));
    expect(answersIn(messageOf('{"action": "decline"}'), question)).toEqual(answer({ action: 'decline' }));
    expect(answersIn(messageOf(''), question)).toEqual({ wrong: expect.any(String) });
  });

  it('of a task is answered by the next message, as a form or in the form of MCP', () => {
    const question: Message = { messageId: 'q', role: 'ROLE_AGENT', ...askingAll({ who: form }) };
    const answer = (message: Message, before = [messageOf('go'), question]) =>
      answersTo({ task: { history: [...before, message] } as never, message });
    expect(question.metadata).toEqual({ kind: 'form', requestedSchema, inputRequests: { who: form } });
    expect(answer(messageOf('Ada'))).toEqual({ answers: { who: { action: 'accept', content: { name: 'Ada' } } } });
    const inputResponses = { who: { action: 'cancel' } };
    expect(answer({ ...messageOf(''), parts: [{ data: { inputResponses } }] })).toEqual({ answers: inputResponses });
    const { again } = answer(messageOf(''));
    expect(again).toMatchObject({
      status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { metadata: question.metadata } },
    });
    expect(answer(messageOf('Ada'), [])).toEqual({});
  });
});
