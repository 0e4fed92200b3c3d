import { isDeepStrictEqual } from 'node:util';
import type { Artifact, Message, Part, StreamResponse, Task } from '../../protocol/a2a/model.js';
import { interruptedStates, terminalStates, type TaskState } from '../../protocol/a2a/states.js';
import type { Said, TaskRun, TaskUpdate } from '../../tasks/executor.port.js';

type MirroredUpdate = Extract<TaskUpdate, { status: unknown } | { artifact: unknown } | { reply: unknown }>;

/** Turns what a remote says into what happened here; says nothing twice. */
export class RemoteMirror {
  private state: TaskState;
  private readonly parts: Map<string, readonly Part[]>;
  private words: readonly Part[] | undefined;
  isSettled = false;

  constructor({ task }: Pick<TaskRun, 'task'>) {
    this.state = task.state;
    this.parts = new Map(task.artifacts.map(({ artifactId, parts }) => [artifactId, parts]));
    this.words = task.statusMessage?.parts;
  }

  /** Nothing was left that a caller could read. */
  get isEmpty(): boolean {
    return this.parts.size === 0;
  }

  *updates(event: StreamResponse): Generator<MirroredUpdate, void> {
    if ('message' in event) {
      this.isSettled = true;
      yield { reply: said(event.message) };
    } else if ('artifactUpdate' in event) {
      const { artifact, append, lastChunk } = event.artifactUpdate;
      const before = append ? (this.parts.get(artifact.artifactId) ?? []) : [];
      this.parts.set(artifact.artifactId, [...before, ...artifact.parts]);
      yield { artifact, append, lastChunk };
    } else if ('statusUpdate' in event) yield* this.move(event.statusUpdate.status);
    else {
      yield* this.artifacts(event.task.artifacts ?? []);
      yield* this.move(event.task.status);
    }
  }

  private *artifacts(artifacts: readonly Artifact[]): Generator<MirroredUpdate, void> {
    for (const artifact of artifacts) {
      if (isDeepStrictEqual(this.parts.get(artifact.artifactId), artifact.parts)) continue;
      this.parts.set(artifact.artifactId, artifact.parts);
      yield { artifact, lastChunk: true };
    }
  }

  private *move({ state: told, message }: Task['status']): Generator<MirroredUpdate, void> {
    // What nobody knows, and a task that only waits to begin, is work under way (F29).
    const state = told === 'TASK_STATE_UNSPECIFIED' || told === 'TASK_STATE_SUBMITTED' ? 'TASK_STATE_WORKING' : told;
    const isRest = terminalStates.has(state) || interruptedStates.has(state);
    const isNews = message && !isDeepStrictEqual(message.parts, this.words);
    if (state === this.state && !isNews && !isRest) return;
    this.state = state;
    this.words = message?.parts;
    this.isSettled = isRest;
    yield { status: { state, ...(message && { message: said(message) }) } };
  }
}

function said({ parts, metadata, extensions }: Message): Said {
  return { parts, ...(metadata && { metadata }), ...(extensions && { extensions }) };
}
