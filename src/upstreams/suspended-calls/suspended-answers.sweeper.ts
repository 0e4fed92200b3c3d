import { Injectable } from '@nestjs/common';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { SuspendedAnswerStore } from './suspended-answer.store.js';

/** Drops answers that whoever posted them did not wait for. */
@Injectable()
@Sweeps('mcp.held-answers')
export class HeldAnswersSweeper implements Sweeper {
  readonly everyMs = 3_600_000;

  constructor(private readonly mail: SuspendedAnswerStore) {}

  sweep(): Promise<void> {
    return this.mail.dropOld();
  }
}
