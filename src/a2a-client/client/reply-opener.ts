import { isJsonObject } from '../../kernel/json.js';
import type { Artifact, Message, Part, StreamResponse, Task, TaskStatus } from '../../protocol/a2a/model.js';
import { terminalStates } from '../../protocol/a2a/states.js';
import { decrypt, StreamOpener, type Incoming } from '../../protocol/e2ee/decrypt.js';
import type { Place } from '../../protocol/e2ee/envelope.js';
import { E2eeError } from '../../protocol/e2ee/errors.js';
import { partsOfPayload } from '../../protocol/e2ee/parts.js';
import type { SendReply } from '../transports/send-reply.js';

/** States with a message that the gateway may have written itself; it is shown as it is, and proves nothing. */
const ownWords: ReadonlySet<string> = new Set(['TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED']);

/**
 * Opens the encrypted answers to one message. Cleartext in an artifact or an answer is refused, because the relay
 * could have written it.
 */
export class ReplyOpener {
  private readonly streams = new Map<string, StreamOpener>();

  constructor(
    private readonly incoming: Omit<Incoming, 'place'>,
    private readonly inReplyTo?: string,
  ) {}

  async openReply(reply: SendReply): Promise<SendReply> {
    if ('message' in reply) return { message: await this.openMessage(reply.message, {}) };
    return { task: await this.openTask(reply.task) };
  }

  async openTask(task: Task): Promise<Task> {
    const place = { contextId: task.contextId, taskId: task.id };
    const artifacts: Artifact[] = [];
    for (const artifact of task.artifacts ?? []) artifacts.push(await this.openWhole(artifact, place, task.status));
    return { ...task, status: await this.openStatus(task.status, place), ...(task.artifacts && { artifacts }) };
  }

  async openEvent(event: StreamResponse): Promise<StreamResponse> {
    if ('task' in event) return { task: await this.openTask(event.task) };
    if ('message' in event) return { message: await this.openMessage(event.message, {}) };
    if ('statusUpdate' in event) {
      const { statusUpdate } = event;
      return {
        statusUpdate: { ...statusUpdate, status: await this.openStatus(statusUpdate.status, placeIn(statusUpdate)) },
      };
    }
    const { artifactUpdate } = event;
    const { artifact } = artifactUpdate;
    const opener = this.streamOf(artifact.artifactId, placeIn(artifactUpdate));
    const parts = await this.openParts(artifact.parts, placeIn(artifactUpdate), opener);
    return { artifactUpdate: { ...artifactUpdate, artifact: { ...artifact, parts } } };
  }

  /** Throws `truncated` when a stream of the answer ended before its last chunk. */
  end(): void {
    for (const opener of this.streams.values()) if (opener.hasBegun) opener.end();
  }

  /** Opens an artifact that is complete so far: all chunks of a stream from the first one on. */
  private async openWhole(artifact: Artifact, place: Place, { state }: TaskStatus): Promise<Artifact> {
    const opener = new StreamOpener(this.at(place));
    const parts = await this.openParts(artifact.parts, place, opener);
    if (opener.hasBegun && terminalStates.has(state)) opener.end();
    return { ...artifact, parts };
  }

  private async openStatus(status: TaskStatus, place: Place): Promise<TaskStatus> {
    const { message, state } = status;
    if (!message || (ownWords.has(state) && !message.parts.some(isEnvelope))) return status;
    return { ...status, message: await this.openMessage(message, place) };
  }

  private async openMessage(message: Message, place: Place): Promise<Message> {
    const { contextId = place.contextId } = message;
    const found = { ...place, ...(contextId !== undefined && { contextId }) };
    return { ...message, parts: await this.openParts(message.parts, found, new StreamOpener(this.at(found))) };
  }

  private async openParts(parts: readonly Part[], place: Place, stream: StreamOpener): Promise<Part[]> {
    const opened: Part[] = [];
    for (const part of parts) {
      if (!isEnvelope(part)) throw new E2eeError('malformed', 'the answer has a part that is not encrypted');
      const isChunk = (part.data as Record<string, unknown>).stream_seq !== undefined;
      opened.push(...partsOfPayload(await (isChunk ? stream.open(part.data) : decrypt(part.data, this.at(place)))));
    }
    return opened;
  }

  private streamOf(artifactId: string, place: Place): StreamOpener {
    const known = this.streams.get(artifactId) ?? new StreamOpener(this.at(place));
    this.streams.set(artifactId, known);
    return known;
  }

  private at({ contextId, taskId }: Place): Incoming {
    const inReplyTo = this.inReplyTo;
    return { ...this.incoming, place: { contextId, taskId, inReplyTo } };
  }
}

function isEnvelope({ data }: Part): boolean {
  return isJsonObject(data) && data.encrypted_payload !== undefined;
}

function placeIn({ contextId, taskId }: { contextId?: string; taskId?: string }): Place {
  return { contextId, taskId };
}
