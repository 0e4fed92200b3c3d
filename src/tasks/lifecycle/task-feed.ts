import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { Notice } from '../../kernel/notices.js';
import { Notices } from '../../platform/bus/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { weightOf } from '../../kernel/json.js';
import { TaskStore } from '../storage/task.store.js';
import type { NumberedEvent, StoredTask } from '../task.types.js';

const pollMs = 500;
/**
 * Most events, and their total weight, that an inbox buffers for a slow reader; above that, the reader reads the log.
 */
const maxBuffered = { events: 1_000, weight: 1_048_576 };

/**
 * One reader's view of the log of a task: gets committed events of this process directly, and hints about those of
 * other processes.
 */
export class Inbox {
  private events: NumberedEvent[] = [];
  private weight = 0;
  private wake?: () => void;
  /** The highest event number that is known to exist. */
  private known = 0;

  constructor(private readonly onClose: () => void) {}

  addEvents(seq: number, events: readonly NumberedEvent[], weight = 0): void {
    this.known = Math.max(this.known, seq);
    this.weight += weight;
    if (this.events.length + events.length > maxBuffered.events || this.weight > maxBuffered.weight) this.clear();
    else this.events.push(...events);
    this.wake?.();
  }

  /**
   * Events right after the cursor, from memory; undefined when the reader must read the log; empty when it has to wait.
   */
  takeEvents(cursor: number): NumberedEvent[] | undefined {
    const later = this.events.filter(({ seq }) => seq > cursor);
    this.clear();
    if (later[0]?.seq === cursor + 1) return later;
    return this.known > cursor ? undefined : [];
  }

  get seen(): number {
    return this.known;
  }

  /** Resolves when there may be more events, or after a nudge. */
  async wait(cursor: number): Promise<void> {
    if (this.known > cursor) return;
    await new Promise<void>((resolve) => (this.wake = resolve));
    this.wake = undefined;
  }

  private clear(): void {
    this.events = [];
    this.weight = 0;
  }

  nudge(): void {
    this.wake?.();
  }

  close(): void {
    this.onClose();
  }
}

/**
 * Notifies the readers of tasks of commits: readers in this process at once, those in other processes by a notice, and
 * all by a slow poll.
 */
@Injectable()
export class TaskFeed implements OnModuleDestroy {
  private readonly inboxes = new Map<string, Set<Inbox>>();
  private readonly timer = setInterval(() => void this.pollEvents(), pollMs).unref();
  private polling = false;

  constructor(
    private readonly notices: Notices,
    private readonly store: TaskStore,
    @Inject(LOGGER) private readonly log: Logger,
  ) {
    notices.onMissed(() => void this.pollEvents());
  }

  /** Call after a commit. `isLocal`: no other process can know of the task yet, so no notice is sent. */
  notifyReaders(task: StoredTask, events: readonly NumberedEvent[], isLocal = false): void {
    const inboxes = this.inboxes.get(task.id);
    if (inboxes) {
      const weight = weightOf(events);
      for (const inbox of inboxes) inbox.addEvents(task.seq, events, weight);
    }
    if (!isLocal) this.notices.tell(undefined, 'task.event-appended', { taskId: task.id, seq: task.seq });
  }

  /** Stops the run of a canceled task, in this process or another. */
  notifyCanceled({ id }: StoredTask): void {
    this.notices.tell(undefined, 'task.cancel-wished', { taskId: id });
  }

  /** Opens an inbox. Open it before you read the task, so that no event is missed in between. */
  openInbox(id: string): Inbox {
    const inboxes = this.inboxes.get(id) ?? new Set();
    this.inboxes.set(id, inboxes);
    const inbox = new Inbox(() => {
      inboxes.delete(inbox);
      if (inboxes.size === 0 && this.inboxes.get(id) === inboxes) this.inboxes.delete(id);
    });
    inboxes.add(inbox);
    return inbox;
  }

  @OnNotice('task.event-appended')
  hear({ taskId, seq }: Notice<'task.event-appended'>): void {
    for (const inbox of this.inboxes.get(taskId) ?? []) if (inbox.seen < seq) inbox.addEvents(seq, []);
  }

  onModuleDestroy(): void {
    clearInterval(this.timer);
  }

  /** Notices are hints and may be lost; the poll reads the rows. */
  private async pollEvents(): Promise<void> {
    if (this.polling || this.inboxes.size === 0) return;
    this.polling = true;
    try {
      const seen = [...this.inboxes].map(
        ([id, inboxes]) => [id, Math.min(...[...inboxes].map((inbox) => inbox.seen))] as const,
      );
      for (const { id, seq } of await this.store.newer(new Map(seen))) this.hear({ taskId: id, seq });
    } catch (err) {
      this.log.debug({ err }, 'the watched tasks could not be polled');
    } finally {
      this.polling = false;
    }
  }
}
