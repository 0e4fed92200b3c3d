import { Injectable } from '@nestjs/common';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { DeliveryWatch } from './delivery-watch.js';
import { DeliveryWatchStore } from './delivery-watch.store.js';

const recentSeconds = 600;

/** Checks every 30 seconds, in a sample, that deliveries kept their order. */
@Injectable()
@Sweeps('webhook.watch')
export class DeliveryWatchSweeper implements Sweeper {
  readonly everyMs = 30_000;

  constructor(
    private readonly store: DeliveryWatchStore,
    private readonly watch: DeliveryWatch,
  ) {}

  async sweep(): Promise<void> {
    const overtaken = await this.store.overtaken(Math.round(Math.random() * recentSeconds));
    for (const id of overtaken) this.watch.countOvertaken(id);
  }
}
