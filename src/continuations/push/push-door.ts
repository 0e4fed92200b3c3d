import { Inject, Injectable } from '@nestjs/common';
import { Notices } from '../../platform/bus/notices.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { readText } from '../../platform/http/body.js';
import type { DoorRequest } from '../../platform/http/http.types.js';
import { TaskService } from '../../tasks/task.service.js';
import type { PushKey } from './push-tokens.js';
import { RemotePushStore } from './remote-push.store.js';

/**
 * Receives pushes of remote agents as doorbells: the process that follows the task polls it at once, and a deferred
 * task is resumed by a worker.
 */
@Injectable()
export class PushDoor {
  constructor(
    private readonly pushes: RemotePushStore,
    private readonly notices: Notices,
    private readonly tasks: TaskService,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  /** Drops the body and stores the push before it resolves. Throws `too_large` when the body is too long. */
  async receive(key: PushKey, request: DoorRequest): Promise<void> {
    if (!request.readableEnded) await readText(request, this.settings.RIALTO_MAX_BODY_BYTES);
    if (await this.pushes.storePush(key)) await this.announcePush(key.taskId);
  }

  /**
   * Announces a stored push. The sweeper announces a push again while it is stored, so that a lost notice is
   * repaired.
   */
  async announcePush(taskId: string): Promise<void> {
    this.notices.tell(undefined, 'continuation.rung', { taskId });
    await this.tasks.wake(taskId, true);
  }
}
