import { Message as SdkMessage, StreamResponse as SdkEvent, Task as SdkTask } from '@a2a-js/sdk';
import type { Artifact, Message, Part, StreamResponse, Task, TaskStatus } from '../../protocol/a2a/model.js';
import { areSoundIds, unsoundId } from '../../protocol/a2a/remote/remote-id.js';
import { stateOf } from '../../protocol/a2a/states.js';
import { restored } from '../../protocol/exact-integers.js';
import { storableJson } from '../../protocol/jsonrpc.js';
import type { SendReply } from './send-reply.js';
import { takeCarried } from './carried.js';
import { notA2a } from './wire-error.js';

// Converts the SDK's objects to the canonical model. The SDK's writer leaves out empty and zero values, so required
// members are added again: states (an unknown one becomes the named fallback), parts, ids. Every text can be stored
// afterwards.

type SendResult = SdkTask | SdkMessage;

/** Restores the values that the checked fetch shielded, and makes every text storable. */
function restoredJson<Value>(value: Value): Value {
  return storableJson(restored(value));
}

export function taskOf(task: SdkTask): Task {
  return restoredJson(completeTask(SdkTask.toJSON(task) as Task));
}

/** Converts the task that was asked for by id; throws for a task with another id. */
export function taskWithId(task: SdkTask, id: string): Task {
  if (task.id !== id) throw notA2a('another task');
  return taskOf(task);
}

export function replyOf(result: SendResult): SendReply {
  return 'status' in result
    ? { task: taskOf(result) }
    : { message: restoredJson(completeMessage(SdkMessage.toJSON(result) as Message)) };
}

export function eventOf(event: SdkEvent): StreamResponse {
  return restoredJson(completeEvent(SdkEvent.toJSON(event) as StreamResponse));
}

function completeEvent(json: StreamResponse): StreamResponse {
  if ('task' in json) return { task: completeTask(json.task) };
  if ('message' in json) return { message: completeMessage(json.message) };
  if ('statusUpdate' in json) {
    requireSoundIds(json.statusUpdate.taskId, json.statusUpdate.contextId);
    return { statusUpdate: { ...json.statusUpdate, status: completeStatus(json.statusUpdate.status) } };
  }
  if (!('artifactUpdate' in json)) throw notA2a('an event of the stream is not valid');
  requireSoundIds(json.artifactUpdate.taskId, json.artifactUpdate.contextId);
  const { append } = takeCarried(json.artifactUpdate);
  const artifact = completeArtifact(json.artifactUpdate.artifact);
  return { artifactUpdate: { ...json.artifactUpdate, artifact, ...(append && { append }) } };
}

function completeTask(task: Task): Task {
  if (!task.id) throw notA2a('a task without an id');
  requireSoundIds(task.id, task.contextId);
  return {
    ...task,
    status: completeStatus(task.status),
    ...(task.artifacts && { artifacts: task.artifacts.map(completeArtifact) }),
    ...(task.history && { history: task.history.map(completeMessage) }),
  };
}

function requireSoundIds(...ids: readonly (string | undefined)[]): void {
  if (!areSoundIds(...ids)) throw notA2a(unsoundId);
}

function completeStatus(status: TaskStatus | undefined): TaskStatus {
  const state = stateOf((status?.state as string | undefined) ?? '');
  return { ...status, state, ...(status?.message && { message: completeMessage(status.message) }) };
}

function completeArtifact(artifact: Artifact | undefined): Artifact {
  const { parts = partsOf(artifact), ...carried } = takeCarried(artifact);
  return { ...artifact, ...carried, artifactId: artifact?.artifactId ?? '', parts };
}

function completeMessage(message: Message): Message {
  const { parts = partsOf(message), ...carried } = takeCarried(message);
  return {
    ...message,
    ...carried,
    messageId: message.messageId ?? '',
    role: message.role ?? 'ROLE_UNSPECIFIED',
    parts,
  };
}

function partsOf(owner: { parts?: Part[] } | undefined): Part[] {
  return owner?.parts ?? [];
}
