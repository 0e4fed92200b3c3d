import { Injectable } from '@nestjs/common';
import type { Message, Part } from '../../protocol/a2a/model.js';
import type { ExecutorConfig } from '../../registry/published.types.js';
import type { TaskExecutor, TaskRun } from '../executor.port.js';
import type { StoredTask } from '../task.types.js';
import { play, type Script } from './scripted-run.js';

type EchoConfig = Extract<ExecutorConfig, { kind: 'echo' }>;

const artifactId = 'echo';

/** Sends each message back. A first agent for new users, and a baseline to measure the gateway's own overhead. */
@Injectable()
export class EchoExecutor implements TaskExecutor {
  readonly kind = 'echo';
  readonly pure = true;

  execute(run: TaskRun) {
    return play(echoScript(run.agent.executor as EchoConfig, run.task, run.message), run);
  }
}

/**
 * The script of an echo run: sets the task to working, asks its question if it has one, then sends the parts back. The
 * parts go at once, or the text goes in `chunks` over a total of `delayMs`. A resumed run continues after the chunks
 * that are already stored.
 */
function echoScript({ delayMs = 0, chunks = 1, ask }: EchoConfig, task: StoredTask, message: Message): Script {
  const working = task.state === 'TASK_STATE_SUBMITTED' ? [{ status: { state: 'TASK_STATE_WORKING' } } as const] : [];
  if (ask !== undefined && !task.history.some(({ role }) => role === 'ROLE_AGENT'))
    return [...working, { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: ask }] } } }];
  const pieces = chunks > 1 ? split(message.parts, chunks) : [message.parts];
  const done = chunks > 1 ? (task.artifacts.find((one) => one.artifactId === artifactId)?.parts.length ?? 0) : 0;
  const pause = delayMs > 0 ? [{ waitMs: Math.ceil(delayMs / pieces.length) }] : [];
  const sent = pieces.flatMap((parts, index): Script => {
    if (index < done) return [];
    const many = pieces.length > 1 && { append: index > 0, lastChunk: index === pieces.length - 1 };
    return [...pause, { artifact: { artifactId, name: 'echo', parts }, ...many }];
  });
  return [...working, ...sent, { status: { state: 'TASK_STATE_COMPLETED', message: { parts: message.parts } } }];
}

/**
 * Splits the text into at most `chunks` pieces of one part each, fewer when the text is short. Each part without text
 * is a piece of its own.
 */
function split(parts: readonly Part[], chunks: number): Part[][] {
  const text = [...parts.map((part) => part.text ?? '').join('\n')];
  const others = parts.filter((part) => part.text === undefined).map((part) => [part]);
  const count = Math.min(chunks, text.length);
  const bound = (index: number): number => Math.round((index * text.length) / count);
  const pieces = Array.from({ length: count }, (_, index): Part[] => [
    { text: text.slice(bound(index), bound(index + 1)).join('') },
  ]);
  return [...pieces, ...others];
}
