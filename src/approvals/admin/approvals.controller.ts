import { Body, Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { pageSchema } from '../../platform/http/page.js';
import { IdParam } from '../../platform/http/params.js';
import { ApprovalService } from '../approval.service.js';
import { ApprovalQuery, ApprovalView, DecideApproval } from '../approval.types.js';

@ApiTags('approvals')
@ApiBearerAuth()
@Controller('api/approvals')
export class ApprovalsController {
  constructor(private readonly approvals: ApprovalService) {}

  @Get()
  @ApiOperation({
    summary: 'Approvals that the caller asked for or may decide, for admins all of the org; newest first',
  })
  @ApiResponse({ status: 200, standardSchema: pageSchema(ApprovalView) })
  list(@Ctx() ctx: CallContext, @Query({ schema: ApprovalQuery }) query: ApprovalQuery) {
    return this.approvals.list(ctx, query);
  }

  @Get(':id')
  @ApiOperation({ summary: 'One approval, with the content of the call' })
  @ApiResponse({ status: 200, standardSchema: ApprovalView })
  get(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.approvals.get(ctx, id);
  }

  @Post(':id')
  @HttpCode(200)
  @ApiOperation({ summary: 'Approve or deny; the caller then sends the same call again' })
  @ApiResponse({ status: 200, standardSchema: ApprovalView })
  decide(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Body({ schema: DecideApproval }) body: DecideApproval,
  ) {
    return this.approvals.decide(ctx, id, body);
  }
}
