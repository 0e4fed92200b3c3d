import { Inject, Injectable } from '@nestjs/common';
import { Notices } from '../../platform/bus/notices.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { readText } from '../../platform/http/body.js';
import type { DoorRequest } from '../../platform/http/http.types.js';
import { TaskService } from '../../tasks/task.service.js';
import type { PushKey } from './push-tokens.js';
import { RemotePushStore } from './remote-push.store.js';

/** Takes pushes of remote agents as doorbells: whoever follows the task looks now, and so does a worker when it was put off. */
@Injectable()
export class PushDoor {
  constructor(
    private readonly pushes: RemotePushStore,
    private readonly notices: Notices,
    private readonly tasks: TaskService,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  /** The body is dropped. Remembered when it resolves. Throws `too_large`. */
  async receive(key: PushKey, request: DoorRequest): Promise<void> {
    if (!request.readableEnded) await readText(request, this.settings.RIALTO_MAX_BODY_BYTES);
    if (await this.pushes.remember(key)) await this.ring(key.taskId);
  }

  /** A ring that is lost is rung again by the sweeper, as long as it is remembered. */
  async ring(taskId: string): Promise<void> {
    this.notices.tell(undefined, 'continuation.rung', { taskId });
    await this.tasks.wake(taskId, true);
  }
}
