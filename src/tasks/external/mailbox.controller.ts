import { Controller, Param, Post, Query, Res, UseGuards } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { DoorResponse } from '../../platform/http/http.types.js';
import { IdParam } from '../../platform/http/params.js';
import { Public } from '../../platform/http/public.decorator.js';
import { HeldBy, MailboxGuard, type Holder } from './mailbox.guard.js';
import { Caller, type LeaseCaller } from './mailbox-caller.decorator.js';
import { LeaseQuery, LeaseView, MailboxService } from './mailbox.service.js';

/**
 * Endpoint where external workers fetch tasks. It has its own guard, because the secret of a mailbox is not valid
 * anywhere else.
 */
@ApiTags('executions')
@ApiBearerAuth()
@Public()
@UseGuards(MailboxGuard)
@Controller('api/mailbox')
export class MailboxController {
  constructor(private readonly mailbox: MailboxService) {}

  @Post(':agent/lease')
  @ApiOperation({ summary: 'Lease the oldest task that waits for an agent; report on it at /api/executions' })
  @ApiResponse({ status: 200, standardSchema: LeaseView })
  @ApiResponse({ status: 204, description: 'No task arrived within waitMs' })
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
