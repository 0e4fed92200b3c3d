import { RialtoError } from '../kernel/errors.js';
import { answerWithout, errorWithout } from './said-back.js';

const key = 'k3y-of/the+agent';
const sent = new Set([key]);
const written = [key, Buffer.from(key).toString('base64url'), encodeURIComponent(key)];

describe('a credential that an agent says back', () => {
  it.each(written)('is taken out of its errors, written as %s', (form) => {
    const data = { remoteCode: -32_000, remoteMessage: `no: ${form}`, remoteData: { got: [form] } };
    const { code, message, data: told } = errorWithout(new RialtoError('remote_error', { message: form, data }), sent);
    expect([code, message]).toEqual(['remote_error', '[redacted]']);
    expect(told).toEqual({ remoteCode: -32_000, remoteMessage: 'no: [redacted]', remoteData: { got: ['[redacted]'] } });
  });

  it.each(written)('is taken out of the last words of a task that failed, written as %s', (form) => {
    const message = (text: string) => ({ messageId: 'm', role: 'ROLE_AGENT' as const, parts: [{ text }] });
    const status = (text: string) => ({ state: 'TASK_STATE_FAILED' as const, message: message(text) });
    const [said, clean] = [status(`no: ${form}`), status('no: [redacted]')];
    const task = { id: 't', status: said };
    expect(answerWithout(task, sent)).toEqual({ id: 't', status: clean });
    expect(answerWithout({ task }, sent)).toEqual({ task: { id: 't', status: clean } });
    expect(answerWithout({ statusUpdate: task }, sent)).toEqual({ statusUpdate: { id: 't', status: clean } });
    const done = { ...task, status: { ...said, state: 'TASK_STATE_COMPLETED' as const } };
    expect(answerWithout(done, sent)).toBe(done);
    expect(answerWithout(task, undefined)).toBe(task);
  });
});
