import { Controller, Param, Post, Query, Res, UseGuards } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { DoorResponse } from '../../platform/http/http.types.js';
import { IdParam } from '../../platform/http/params.js';
import { Public } from '../../platform/http/public.decorator.js';
import { HeldBy, MailboxGuard, type Holder } from './mailbox.guard.js';
import { Caller, type LeaseCaller } from './mailbox-caller.decorator.js';
import { LeaseQuery, LeaseView, MailboxService } from './mailbox.service.js';

/** Where workers fetch tasks. Its own guard lets them in: the secret of a mailbox is no credential anywhere else. */
@ApiTags('executions')
@ApiBearerAuth()
@Public()
@UseGuards(MailboxGuard)
@Controller('api/mailbox')
export class MailboxController {
  constructor(private readonly mailbox: MailboxService) {}

  @Post(':agent/lease')
  @ApiOperation({ summary: 'Take the oldest task that waits for an agent; reports on it go to its executions' })
  @ApiResponse({ status: 200, standardSchema: LeaseView })
  @ApiResponse({ status: 204, description: 'None came in time' })
  async lease(
    @HeldBy() holder: Holder,
    @Param('agent', { schema: IdParam }) agent: string,
    @Query({ schema: LeaseQuery }) query: LeaseQuery,
    @Caller() caller: LeaseCaller,
    @Res({ passthrough: true }) response: DoorResponse,
  ) {
    const lease = await this.mailbox.lease(holder, agent, query, caller);
    response.statusCode = lease ? 200 : 204;
    return lease;
  }
}
