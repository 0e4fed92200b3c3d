import type { Task } from '../../protocol/a2a/model.js';
import type { TaskState } from '../../protocol/a2a/states.js';
import { A2AClientError } from './client-errors.js';
import { capped, replyText } from './client-text.js';

const message = (text: string, role: 'ROLE_AGENT' | 'ROLE_USER' = 'ROLE_AGENT') => ({
  messageId: 'm',
  role,
  parts: [{ text }],
});

function task(state: TaskState, more: Partial<Task> & { says?: string } = {}): { task: Task } {
  const { says, ...rest } = more;
  return { task: { id: 't', status: { state, ...(says && { message: message(says) }) }, ...rest } };
}

function codeOf(work: () => string): string {
  try {
    return work();
  } catch (error) {
    return error instanceof A2AClientError ? error.code : String(error);
  }
}

describe('replyText', () => {
  it('AN-26 returns the text of a message, the last artifact, the status message or the last agent message', () => {
    const artifacts = ['one', 'two', ''].map((text, index) => ({ artifactId: String(index), parts: [{ text }] }));
    const history = [message('asked', 'ROLE_USER'), message('said'), message('asked again', 'ROLE_USER')];
    expect(replyText({ message: message('hello') })).toBe('hello');
    expect(replyText(task('TASK_STATE_COMPLETED', { artifacts, says: 'done', history }))).toBe('two');
    expect(replyText(task('TASK_STATE_COMPLETED', { says: 'done', history }))).toBe('done');
    expect(replyText(task('TASK_STATE_COMPLETED', { history }))).toBe('said');
  });

  it('AN-34 returns the question of a task that waits for input', () => {
    const artifacts = [{ artifactId: 'a', parts: [{ text: 'so far' }] }];
    expect(replyText(task('TASK_STATE_INPUT_REQUIRED', { artifacts, says: 'Which one?' }))).toBe('Which one?');
  });

  it('(N2) joins the parts of one artifact into one text', () => {
    const parts = ['The', ' capital', ' is', ' Paris', '.'].map((text) => ({ text }));
    const artifacts = [{ artifactId: 'a', parts }];
    expect(replyText(task('TASK_STATE_COMPLETED', { artifacts }))).toBe('The capital is Paris.');
    expect(replyText(task('TASK_STATE_WORKING', { artifacts }))).toBe('The capital is Paris.');
  });

  it('AN-26 writes data as JSON', () => {
    const artifacts = [{ artifactId: 'a', parts: [{ data: { n: 1 } }, { text: 'and text' }] }];
    expect(replyText(task('TASK_STATE_COMPLETED', { artifacts }))).toBe('{"n":1}\nand text');
  });

  it('AN-36 throws a different code for each terminal state', () => {
    expect(codeOf(() => replyText(task('TASK_STATE_FAILED')))).toBe('a2a_task_failed');
    expect(codeOf(() => replyText(task('TASK_STATE_CANCELED')))).toBe('a2a_task_canceled');
    expect(codeOf(() => replyText(task('TASK_STATE_REJECTED')))).toBe('a2a_task_rejected');
    expect(codeOf(() => replyText(task('TASK_STATE_COMPLETED')))).toBe('empty_agent_response');
    expect(codeOf(() => replyText({ message: message('  ') }))).toBe('empty_agent_response');
  });
});

describe('capped', () => {
  it('AN-37 keeps 32,768 characters, the last 8,192 among them', () => {
    const text = Array.from({ length: 100_000 }, (_, index) => String.fromCharCode(97 + (index % 26))).join('');
    const cut = capped(text);
    expect([cut.length <= 32_768, cut.length > 32_700]).toEqual([true, true]);
    expect([cut.endsWith(text.slice(-8_192)), cut.startsWith(text.slice(0, 20_000))]).toEqual([true, true]);
    const missing = Number(/\[… (\d+) characters left out …\]/.exec(cut)?.[1]);
    expect(missing + cut.replace(/\n\[….*…\]\n/, '').length).toBe(100_000);
  });

  it('AN-37 leaves a text within the limit unchanged', () => {
    const text = 'x'.repeat(32_768);
    expect(capped(text)).toBe(text);
  });
});
