import { Controller, Get, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { pageSchema } from '../../platform/http/page.js';
import { DispatchLogService } from './dispatch-log.service.js';
import { DispatchQuery, DispatchView } from '../dispatch.types.js';

@ApiTags('dispatch')
@ApiBearerAuth()
@Controller('api/a2a/dispatches')
export class DispatchLogController {
  constructor(private readonly log: DispatchLogService) {}

  @Get()
  @ApiOperation({ summary: 'Calls to registered agents, newest first; those of others for admins alone' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(DispatchView) })
  list(@Ctx() ctx: CallContext, @Query({ schema: DispatchQuery }) query: DispatchQuery) {
    return this.log.list(ctx, query);
  }
}
