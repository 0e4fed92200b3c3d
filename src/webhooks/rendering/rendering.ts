import type { StreamResponse } from '../../protocol/a2a/model.js';
import type { PushFormat } from '../../protocol/a2a/request/operations.js';
import { eventBody, needsOnlyEvent, taskBody } from './body.js';
import { beginning, replay, taskAt, type Past } from './replay.js';
import type { TaskLogService } from '../../tasks/task-log.service.js';

/** How many events after the requested one a read of the log brings. */
const readAhead = 50;

/** Creates the bodies for one configuration in the order of their events, and reads the log once for all of them. */
export class Rendering {
  private past: Past = beginning;
  private at = 0;
  private ahead: ReadonlyMap<number, StreamResponse> = new Map();

  constructor(
    private readonly log: TaskLogService,
    private readonly taskId: string,
  ) {}

  /** The body for an event; undefined when nothing is posted for it: the format leaves it out, or the task is gone. */
  async renderBody(format: PushFormat, seq: number): Promise<string | undefined> {
    if (!needsOnlyEvent(format)) return this.renderTaskBody(format, seq);
    const event = this.ahead.get(seq) ?? (await this.readOn(seq));
    return event && eventBody(format, event);
  }

  /** Reads ahead, because the next events are usually needed next. Logs have no gaps. */
  private async readOn(seq: number): Promise<StreamResponse | undefined> {
    const events = await this.log.events(this.taskId, seq - 1, seq + readAhead);
    this.ahead = new Map(events.map((event, index) => [seq + index, event]));
    return this.ahead.get(seq);
  }

  private async renderTaskBody(format: 'task' | 'reyn', seq: number): Promise<string | undefined> {
    if (seq <= this.at) this.rewind();
    const [events, facts] = await Promise.all([this.log.events(this.taskId, this.at, seq), this.log.task(this.taskId)]);
    const event = events.at(-1);
    if (!event || !facts) return undefined;
    for (const each of events) this.past = replay(this.past, each, facts.history);
    this.at = seq;
    const { stateBefore } = this.past;
    const { agentName } = facts;
    return taskBody(format, {
      event,
      seq,
      task: taskAt(this.past, facts),
      agentName,
      ...(stateBefore && { stateBefore }),
    });
  }

  private rewind(): void {
    this.past = beginning;
    this.at = 0;
  }
}
