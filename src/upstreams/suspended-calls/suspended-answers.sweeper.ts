import { Injectable } from '@nestjs/common';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { SuspendedAnswerStore } from './suspended-answer.store.js';

/** Deletes answers with an outcome that was never taken. */
@Injectable()
@Sweeps('mcp.held-answers')
export class HeldAnswersSweeper implements Sweeper {
  readonly everyMs = 3_600_000;

  constructor(private readonly answers: SuspendedAnswerStore) {}

  sweep(): Promise<void> {
    return this.answers.dropOld();
  }
}
