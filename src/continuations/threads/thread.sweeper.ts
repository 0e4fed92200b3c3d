import { Injectable } from '@nestjs/common';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { ThreadAnswerStore } from './thread-answer.store.js';
import { ThreadDeliverer } from './thread-deliverer.js';

/** Finds due thread answers: a task ended or has news, an attempt failed, or a sender died. */
@Injectable()
@Sweeps('thread.due')
export class ThreadSweeper implements Sweeper {
  readonly everyMs = 1_000;

  constructor(
    private readonly answers: ThreadAnswerStore,
    private readonly deliverer: ThreadDeliverer,
  ) {}

  async sweep(): Promise<void> {
    const { room, busyOrigins } = this.deliverer;
    if (room <= 0) return;
    for (const due of await this.answers.findDue(room, busyOrigins)) this.deliverer.beginDelivery(due);
  }
}
