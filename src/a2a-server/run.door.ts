import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { whenGone } from '../platform/http/caller-gone.js';
import type { EventStream } from '../platform/http/streams/event-stream.js';
import type { DoorRequest, DoorResponse, HotRoute } from '../platform/http/http.types.js';
import { sendProblem } from '../platform/http/problem.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { ContextService } from '../policy/context.service.js';
import { runEvent } from '../protocol/a2a/run/run-event.js';
import { runView, type RunWebhook } from '../protocol/a2a/run/run-view.js';
import { formatEvent } from '../protocol/sse.js';
import { TaskService, type StreamedEvent } from '../tasks/task.service.js';
import { isEnded, taskView, type StoredTask } from '../tasks/task.types.js';
import { WebhookService } from '../webhooks/webhook.service.js';
import { lastEventId } from './a2a-requests.js';
import { Replies } from './reply.js';

const pathPattern = /^\/a2a\/tasks\/([^/]+)(\/cancel|\/events)?\/?$/;

type Answer = (ctx: CallContext, request: DoorRequest, response: DoorResponse, id: string) => Promise<void>;

/** Run view: shows, follows and cancels a task by its id alone, in the flat format of Reyn's clients (RY-17…RY-24). */
@Injectable()
export class RunDoor {
  constructor(
    private readonly contexts: ContextService,
    private readonly tasks: TaskService,
    private readonly webhooks: WebhookService,
    private readonly replies: Replies,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Routes for the table of the front door. */
  routes(): HotRoute[] {
    return [
      this.route('GET', '', 'A task as a run: flat, with the whole task', (ctx, _request, response, id) =>
        this.showRun(ctx, response, id),
      ),
      this.route(
        'POST',
        '/cancel',
        'Cancel a run; a run that has ended is returned unchanged',
        (ctx, _request, response, id) => this.cancelRun(ctx, response, id),
      ),
      this.route(
        'GET',
        '/events',
        'Stream of the state changes of a run, from the first one',
        (ctx, request, response, id) => this.followRun(ctx, request, response, id),
      ),
    ];
  }

  private route(method: string, suffix: string, summary: string, answer: Answer): HotRoute {
    return {
      template: `/a2a/tasks/{id}${suffix}`,
      methods: [method],
      cors: true,
      summary,
      match: (path) => {
        const [, id, rest = ''] = pathPattern.exec(path) ?? [];
        return id !== undefined && rest === suffix ? { id } : undefined;
      },
      handle: async (request, response, _target, params) => {
        try {
          const ctx = await this.contexts.openContext(request, 'a2a', whenGone(response)());
          await answer(ctx, request, response, params.id!);
        } catch (thrown) {
          const error = RialtoError.from(thrown);
          if (error.code === 'internal')
            this.log.error({ err: thrown, requestId: request.requestId }, 'a request failed');
          if (response.headersSent || response.destroyed) response.destroy();
          else sendProblem(request, response, error.code, error);
        }
      },
    };
  }

  private async showRun(ctx: CallContext, response: DoorResponse, id: string): Promise<void> {
    const task = await this.tasks.get(ctx, undefined, id);
    await this.sendRun(response, task, await this.webhooks.ofRun(task.id));
  }

  /** Cancels a run. A run that has ended is returned unchanged and without an error (RY-21). */
  private async cancelRun(ctx: CallContext, response: DoorResponse, id: string): Promise<void> {
    try {
      await this.sendRun(response, await this.tasks.cancel(ctx, undefined, id));
    } catch (error) {
      if (RialtoError.from(error).code !== 'task_not_cancelable') throw error;
      await this.sendRun(response, await this.tasks.get(ctx, undefined, id));
    }
  }

  private async followRun(ctx: CallContext, request: DoorRequest, response: DoorResponse, id: string): Promise<void> {
    const after = lastEventId(request) ?? 0;
    const task = await this.tasks.get(ctx, undefined, id);
    const stream = this.replies.openStream(ctx, response);
    const events = this.tasks.subscribe(ctx, undefined, id, { after, signal: ctx.signal });
    try {
      stream.writeHead();
      for await (const event of events) if (!(await this.sendChange(ctx, stream, task, event))) return;
      stream.end(formatEvent({ event: 'end', data: '{}' }));
    } finally {
      await events.return();
      if (stream.headersSent) stream.end();
    }
  }

  /** Sends only changes of state; contents of artifacts and arguments are not part of this stream (RY-09, RY-25). */
  private async sendChange(
    ctx: CallContext,
    stream: EventStream,
    task: StoredTask,
    { seq = 0, body }: StreamedEvent,
  ): Promise<boolean> {
    const change =
      'statusUpdate' in body ? body.statusUpdate : 'task' in body ? { status: body.task.status } : undefined;
    if (!change) return true;
    const isLast = isEnded({ state: change.status.state });
    const now = isLast ? await this.tasks.get(ctx, undefined, task.id) : task;
    const data = JSON.stringify(runEvent(taskView(now), change, seq, task.agentName));
    return stream.send(formatEvent({ id: String(seq), data }));
  }

  private sendRun(response: DoorResponse, task: StoredTask, webhook?: RunWebhook): Promise<void> {
    return this.replies.sendResult(response, 200, runView(taskView(task), task.agentName, webhook));
  }
}
