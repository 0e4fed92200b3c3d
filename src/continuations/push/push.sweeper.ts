import { Injectable } from '@nestjs/common';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { PushDoor } from './push-door.js';
import { RemotePushStore } from './remote-push.store.js';

const perSweep = 200;
/** An answer that was to bring a task is here by then, and a task that was put off has been hurried. */
const keptMs = 3_600_000;

/** Rings again for pushes that nobody heard, and drops those that nobody will. */
@Injectable()
@Sweeps('continuation.pushes')
export class PushSweeper implements Sweeper {
  readonly everyMs = 1_000;

  constructor(
    private readonly pushes: RemotePushStore,
    private readonly door: PushDoor,
  ) {}

  async sweep(): Promise<void> {
    const unheard = await this.pushes.unheard(perSweep);
    await Promise.all(unheard.map((taskId) => this.door.ring(taskId)));
    await this.pushes.dropOld(keptMs);
  }
}
