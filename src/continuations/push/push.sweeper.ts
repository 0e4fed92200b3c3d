import { Injectable } from '@nestjs/common';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { PushDoor } from './push-door.js';
import { RemotePushStore } from './remote-push.store.js';

const perSweep = 200;

/** Announces stored pushes again that no poll followed. */
@Injectable()
@Sweeps('continuation.pushes')
export class PushSweeper implements Sweeper {
  readonly everyMs = 1_000;

  constructor(
    private readonly pushes: RemotePushStore,
    private readonly door: PushDoor,
  ) {}

  async sweep(): Promise<void> {
    const unheard = await this.pushes.findUnheard(perSweep);
    await Promise.all(unheard.map((taskId) => this.door.announcePush(taskId)));
  }
}
