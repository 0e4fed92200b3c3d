import { Injectable } from '@nestjs/common';
import type { Message } from '../../protocol/a2a/model.js';
import type { TaskState } from '../../protocol/a2a/states.js';
import type { TaskExecutor, TaskRun, TaskUpdate } from '../executor.port.js';
import { play, type Script } from './scripted-run.js';

const messageOf = (text: string) => ({ parts: [{ text }] });
const status = (state: TaskState, text?: string): TaskUpdate => ({
  status: { state, ...(text !== undefined && { message: messageOf(text) }) },
});
const working = status('TASK_STATE_WORKING');
const completed = (text?: string): TaskUpdate => status('TASK_STATE_COMPLETED', text);
const asksMore = status('TASK_STATE_INPUT_REQUIRED', 'What else?');
const wantsCredential = status('TASK_STATE_AUTH_REQUIRED', 'Authorize this outside of A2A.');
const text: TaskUpdate = { artifact: { artifactId: 'text', parts: [{ text: 'Streamed text' }] }, lastChunk: true };
const file = {
  artifactId: 'file',
  parts: [{ raw: 'ZmlsZSBjb250ZW50', filename: 'output.txt', mediaType: 'text/plain' }],
};
const link = { url: 'https://example.com/output.txt', filename: 'output.txt', mediaType: 'text/plain' };
const chunk = (words: string) => ({ artifactId: 'chunked', parts: [{ text: words }] });
const never = { waitMs: 600_000 };

const multiTurn = 'tck-multi-turn';

/** Scripts by prefix of a message id or of a text. The longest matching prefix wins. */
const scripts: Readonly<Record<string, Script>> = {
  'tck-complete-task': [completed('Hello from TCK')],
  'tck-input-required': [asksMore],
  [multiTurn]: [asksMore],
  'tck-auth-required': [wantsCredential],
  'tck-delayed-complete': [working, { waitMs: 2_000 }, completed('Done after delay')],
  'tck-reject-task': [status('TASK_STATE_REJECTED', 'rejected')],
  'tck-task-failure': [working, status('TASK_STATE_FAILED', 'failed')],
  'tck-message-response': [{ reply: messageOf('Direct message response') }],
  'tck-artifact-text': [{ artifact: { artifactId: 'text', parts: [{ text: 'Generated text content' }] } }, completed()],
  'tck-artifact-file': [{ artifact: file }, completed()],
  'tck-artifact-file-url': [{ artifact: { artifactId: 'link', parts: [link] } }, completed()],
  'tck-artifact-data': [
    { artifact: { artifactId: 'data', parts: [{ data: { key: 'value', count: 42 } }] } },
    completed(),
  ],
  'tck-stream-': [working, text, completed()],
  'tck-stream-002': [completed()],
  'tck-stream-artifact-file': [working, { artifact: file }, completed()],
  'tck-stream-artifact-chunked': [
    working,
    { artifact: chunk('first '), append: false, lastChunk: false },
    { artifact: chunk('second'), append: true, lastChunk: true },
    completed(),
  ],
  'tck-stream-chunked': [
    working,
    { artifact: chunk('first '), append: false, lastChunk: false },
    { artifact: chunk('second'), append: true, lastChunk: true },
    completed(),
  ],
  'tck-long-running': [
    working,
    { waitMs: 3_000 },
    { artifact: { artifactId: 'text', parts: [{ text: 'Long work' }] } },
    completed(),
  ],
  'tck-cancel': [working, never, completed()],
  'test-resubscribe-message-id': [working, { waitMs: 4_000 }, completed()],
};

/** Produces on request the behaviours that conformance kits test. The only place that knows their prefixes. */
@Injectable()
export class ConformanceExecutor implements TaskExecutor {
  readonly kind = 'conformance';
  readonly pure = true;

  execute(run: TaskRun) {
    const { agent, message, task } = run;
    const [first] = task.history;
    const requested = scriptOf(message) ?? (first && turnsOf(first));
    const usual = agent.versions.includes('1.0') ? [completed()] : [working, asksMore];
    const script =
      requested === scripts[multiTurn] && isDone(message) ? [completed('Hello from TCK')] : (requested ?? usual);
    return play(task.state === 'TASK_STATE_SUBMITTED' ? script : script.filter((step) => step !== working), run);
  }
}

/**
 * The script for a message, by its prefix. Undefined without a known prefix: a kit of v1.0 then expects completion, a
 * kit of v0.3 a task that continues.
 */
function scriptOf({ messageId, parts }: Message): Script | undefined {
  return chosen(messageId) ?? chosen(parts[0]?.text ?? '');
}

/**
 * The multi-turn script when the first message asked for it. Such a task stays multi-turn for any prefix of a later
 * message.
 */
function turnsOf(first: Message): Script | undefined {
  const script = scriptOf(first);
  return script === scripts[multiTurn] ? script : undefined;
}

/** True for the last turn: its text contains "done". */
function isDone({ parts }: Message): boolean {
  return parts.some(({ text = '' }) => text.toLowerCase().includes('done'));
}

function chosen(words: string): Script | undefined {
  const [longest] = Object.keys(scripts)
    .filter((prefix) => words.startsWith(prefix))
    .sort((a, b) => b.length - a.length);
  return longest === undefined ? undefined : scripts[longest];
}
