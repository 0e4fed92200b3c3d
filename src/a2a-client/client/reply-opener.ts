import { isJsonObject } from '../../kernel/json.js';
import type { Artifact, Message, Part, StreamResponse, Task, TaskStatus } from '../../protocol/a2a/model.js';
import { interruptedStates, terminalStates, type TaskState } from '../../protocol/a2a/states.js';
import { decrypt, StreamOpener, type Incoming } from '../../protocol/e2ee/decrypt.js';
import type { Place } from '../../protocol/e2ee/envelope.js';
import { E2eeError } from '../../protocol/e2ee/errors.js';
import { partsOfPayload } from '../../protocol/e2ee/parts.js';
import type { SendReply } from '../transports/send-reply.js';

/** States with a message that the gateway may have written itself; it is shown as it is, and proves nothing. */
const ownWords: ReadonlySet<string> = new Set(['TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED']);

/**
 * Opens the encrypted answers to one message. Cleartext in an artifact or an answer is refused, because the relay
 * could have written it. The relay also writes the state, so a settled answer must have the ends of its streams.
 */
export class ReplyOpener {
  private readonly streams = new Map<string, StreamOpener>();
  /** Envelopes of the artifact events. */
  private readonly seen = new Set<string>();
  private hasOpened = false;

  constructor(
    private readonly incoming: Omit<Incoming, 'place'>,
    private readonly inReplyTo?: string,
  ) {}

  async openReply(reply: SendReply): Promise<SendReply> {
    if ('message' in reply) return { message: await this.openAnswer(reply.message) };
    return { task: await this.openTask(reply.task) };
  }

  async openTask(task: Task): Promise<Task> {
    const place = this.placeIn({ contextId: task.contextId, taskId: task.id });
    const incoming = this.at(place, new Set());
    const artifacts: Artifact[] = [];
    for (const artifact of task.artifacts ?? []) artifacts.push(await this.openWhole(artifact, incoming, task.status));
    const status = await this.openStatus(task.status, incoming);
    const history = await this.openHistory(task.history ?? [], { ...place, inReplyTo: undefined });
    this.requireContent(status.state);
    return { ...task, status, ...(task.artifacts && { artifacts }), ...(task.history && { history }) };
  }

  async openEvent(event: StreamResponse): Promise<StreamResponse> {
    if ('task' in event) return { task: await this.openTask(event.task) };
    if ('message' in event) return { message: await this.openAnswer(event.message) };
    if ('statusUpdate' in event) {
      const { statusUpdate } = event;
      const status = await this.openStatus(statusUpdate.status, this.at(this.placeIn(statusUpdate), new Set()));
      if (isSettled(status.state) && !ownWords.has(status.state)) this.end();
      this.requireContent(status.state);
      return { statusUpdate: { ...statusUpdate, status } };
    }
    const { artifactUpdate } = event;
    const { artifact } = artifactUpdate;
    const incoming = this.at(this.placeIn(artifactUpdate), this.seen);
    const parts = await this.openParts(artifact.parts, incoming, this.streamOf(artifact.artifactId, incoming));
    return { artifactUpdate: { ...artifactUpdate, artifact: { ...artifact, parts } } };
  }

  /** Throws `truncated` when a stream of the answer ended before its last chunk. */
  end(): void {
    for (const opener of this.streams.values()) if (opener.hasBegun) opener.end();
  }

  /** Throws `truncated` for a completed answer without any envelope: the relay could have dropped all of them. */
  private requireContent(state: TaskState): void {
    if (state === 'TASK_STATE_COMPLETED' && !this.hasOpened)
      throw new E2eeError(
        'truncated',
        'the completed answer has no encrypted part; an empty one needs an envelope too',
      );
  }

  /** Opens an artifact that is complete so far: all chunks of a stream from the first one on. */
  private async openWhole(artifact: Artifact, incoming: Incoming, { state }: TaskStatus): Promise<Artifact> {
    const opener = new StreamOpener(incoming);
    const parts = await this.openParts(artifact.parts, incoming, opener);
    if (opener.hasBegun && isSettled(state)) opener.end();
    return { ...artifact, parts };
  }

  private async openStatus(status: TaskStatus, incoming: Incoming): Promise<TaskStatus> {
    const { message, state } = status;
    if (!message || (ownWords.has(state) && !message.parts.some(isEnvelope))) return status;
    return { ...status, message: await this.openMessage(message, incoming) };
  }

  /** Opens the messages of the agent, and leaves out its cleartext ones, which the relay could have written. */
  private async openHistory(history: readonly Message[], place: Place): Promise<Message[]> {
    const opened: Message[] = [];
    for (const message of history) {
      if (message.role !== 'ROLE_AGENT') opened.push(message);
      else if (message.parts.some(isEnvelope)) opened.push(await this.openMessage(message, this.at(place, new Set())));
    }
    return opened;
  }

  /** Opens an answer that is a message alone. */
  private async openAnswer(message: Message): Promise<Message> {
    const opened = await this.openMessage(message, this.at(this.placeIn({}), new Set()));
    this.requireContent('TASK_STATE_COMPLETED');
    return opened;
  }

  /** Opens a message, which has all chunks of a stream. */
  private async openMessage(message: Message, { place, ...incoming }: Incoming): Promise<Message> {
    const { contextId = place.contextId } = message;
    const found = { ...incoming, place: { ...place, ...(contextId !== undefined && { contextId }) } };
    const opener = new StreamOpener(found);
    const parts = await this.openParts(message.parts, found, opener);
    if (opener.hasBegun) opener.end();
    return { ...message, parts };
  }

  private async openParts(parts: readonly Part[], incoming: Incoming, stream: StreamOpener): Promise<Part[]> {
    const opened: Part[] = [];
    for (const part of parts) {
      if (!isEnvelope(part)) throw new E2eeError('malformed', 'the answer has a part that is not encrypted');
      const isChunk = (part.data as Record<string, unknown>).stream_seq !== undefined;
      opened.push(...partsOfPayload(await (isChunk ? stream.open(part.data) : decrypt(part.data, incoming))));
      this.hasOpened = true;
    }
    return opened;
  }

  private streamOf(artifactId: string, incoming: Incoming): StreamOpener {
    const known = this.streams.get(artifactId) ?? new StreamOpener(incoming);
    this.streams.set(artifactId, known);
    return known;
  }

  /** @param seen ids of the envelopes of one answer, in which none may come twice. */
  private at(place: Place, seen: Set<string>): Incoming {
    return { ...this.incoming, place, replays: { admit: (id) => !seen.has(id) && seen.add(id).has(id) } };
  }

  private placeIn({ contextId, taskId }: { contextId?: string; taskId?: string }): Place {
    return { contextId, taskId, inReplyTo: this.inReplyTo };
  }
}

function isEnvelope({ data }: Part): boolean {
  return isJsonObject(data) && data.encrypted_payload !== undefined;
}

function isSettled(state: TaskState): boolean {
  return terminalStates.has(state) || interruptedStates.has(state);
}
