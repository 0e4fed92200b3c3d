import { RialtoError } from '../../kernel/errors.js';
import { answerWithout, errorWithout } from './sent-credentials.js';

const key = 'k3y-of/the+agent';
const sent = new Set([key]);
const written = [key, Buffer.from(key).toString('base64url'), encodeURIComponent(key)];

describe('a credential in the answer of an agent', () => {
  it.each(written)('is removed from its errors, written as %s', (form) => {
    const data = { remoteCode: -32_000, remoteMessage: `no: ${form}`, remoteData: { got: [form] } };
    const {
      code,
      message,
      cause,
      data: cleaned,
    } = errorWithout(new RialtoError('remote_error', { message: form, data, cause: { data: [{ got: form }] } }), sent);
    expect(cause).toEqual({ data: [{ got: '[redacted]' }] });
    expect([code, message]).toEqual(['remote_error', '[redacted]']);
    expect(cleaned).toEqual({
      remoteCode: -32_000,
      remoteMessage: 'no: [redacted]',
      remoteData: { got: ['[redacted]'] },
    });
  });

  it.each(written)('is removed from the texts of its tasks in every end state, written as %s', (form) => {
    const message = (text: string) => ({ messageId: 'm', role: 'ROLE_AGENT' as const, parts: [{ text }] });
    for (const state of ['TASK_STATE_FAILED', 'TASK_STATE_COMPLETED']) {
      const task = (text: string) => ({
        id: 't',
        status: { state, message: message(text) },
        artifacts: [{ parts: [{ data: { [text]: [text] } }] }],
      });
      expect(answerWithout(task(`no: ${form}`), sent)).toEqual(task('no: [redacted]'));
      expect(answerWithout({ task: task(form) }, sent)).toEqual({ task: task('[redacted]') });
    }
  });

  it('leaves an answer without it unchanged', () => {
    const answer = { id: 't', artifacts: [{ parts: [{ text: 'fine' }] }] };
    expect(answerWithout(answer, sent)).toBe(answer);
    expect(answerWithout(answer, undefined)).toBe(answer);
  });
});
