import { isDeepStrictEqual } from 'node:util';
import type { Artifact, Message, Part, StreamResponse, Task } from '../../protocol/a2a/model.js';
import { interruptedStates, terminalStates, type TaskState } from '../../protocol/a2a/states.js';
import type { Said, TaskRun, TaskUpdate } from '../../tasks/executor.port.js';

type MirroredUpdate = Extract<TaskUpdate, { status: unknown } | { artifact: unknown } | { reply: unknown }>;

/** Converts the events of a remote task into updates of the task here; drops repeats. */
export class RemoteMirror {
  private state: TaskState;
  private readonly parts: Map<string, readonly Part[]>;
  private lastParts: readonly Part[] | undefined;
  isSettled = false;

  constructor({ task }: Pick<TaskRun, 'task'>) {
    this.state = task.state;
    this.parts = new Map(task.artifacts.map(({ artifactId, parts }) => [artifactId, parts]));
    this.lastParts = task.statusMessage?.parts;
  }

  /** True when the remote has sent no artifact. */
  get isEmpty(): boolean {
    return this.parts.size === 0;
  }

  *updates(event: StreamResponse): Generator<MirroredUpdate, void> {
    if ('message' in event) {
      this.isSettled = true;
      yield { reply: replyOf(event.message) };
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

  private *move({ state: remoteState, message }: Task['status']): Generator<MirroredUpdate, void> {
    // An unknown state, and a task that waits to begin, count as working.
    const isUnclear = remoteState === 'TASK_STATE_UNSPECIFIED' || remoteState === 'TASK_STATE_SUBMITTED';
    const state = isUnclear ? 'TASK_STATE_WORKING' : remoteState;
    const isSettledState = terminalStates.has(state) || interruptedStates.has(state);
    const isNews = message && !isDeepStrictEqual(message.parts, this.lastParts);
    if (state === this.state && !isNews && !isSettledState) return;
    this.state = state;
    this.lastParts = message?.parts;
    this.isSettled = isSettledState;
    yield { status: { state, ...(message && { message: replyOf(message) }) } };
  }
}

function replyOf({ parts, metadata, extensions }: Message): Said {
  return { parts, ...(metadata && { metadata }), ...(extensions && { extensions }) };
}
