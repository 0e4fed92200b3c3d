import { Injectable } from '@nestjs/common';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { UpstreamsService } from './upstreams.service.js';

/** Asks servers what they have that were declared while they could not be reached. */
@Injectable()
@Sweeps('mcp.servers')
export class UnreadServersSweeper implements Sweeper {
  readonly everyMs = 5_000;

  constructor(private readonly upstreams: UpstreamsService) {}

  sweep(): Promise<void> {
    return this.upstreams.readUnread();
  }
}
