import { Controller, Param, Post, Query, Res } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../kernel/call-context.js';
import { Ctx } from '../platform/http/ctx.decorator.js';
import type { DoorResponse } from '../platform/http/http.types.js';
import { IdParam } from '../platform/http/params.js';
import { Gone } from './mailbox-gone.decorator.js';
import { LeaseQuery, LeaseView, MailboxService } from './mailbox.service.js';

@ApiTags('executions')
@ApiBearerAuth()
@Controller('api/mailbox')
export class MailboxController {
  constructor(private readonly mailbox: MailboxService) {}

  @Post(':agent/lease')
  @ApiOperation({ summary: 'Take the oldest task that waits for an agent; reports on it go to its executions' })
  @ApiResponse({ status: 200, standardSchema: LeaseView })
  @ApiResponse({ status: 204, description: 'None came in time' })
  async lease(
    @Ctx() ctx: CallContext,
    @Param('agent', { schema: IdParam }) agent: string,
    @Query({ schema: LeaseQuery }) query: LeaseQuery,
    @Gone() gone: AbortSignal,
    @Res({ passthrough: true }) response: DoorResponse,
  ) {
    const lease = await this.mailbox.lease(ctx, agent, query, gone);
    response.statusCode = lease ? 200 : 204;
    return lease;
  }
}
