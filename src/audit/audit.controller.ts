import { Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../kernel/call-context.js';
import { Ctx } from '../platform/http/ctx.decorator.js';
import { pageSchema } from '../platform/http/page.js';
import { IdParam } from '../platform/http/params.js';
import { AuditService } from './audit.service.js';
import { AuditEventView, AuditQuery, DecisionQuery, DecisionView, Verification } from './audit.types.js';

@ApiTags('audit')
@ApiBearerAuth()
@Controller('api/audit')
export class AuditController {
  constructor(private readonly audit: AuditService) {}

  @Get('events')
  @ApiOperation({ summary: 'Audit events, newest first, each with its position in the hash chain' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(AuditEventView) })
  events(@Ctx() ctx: CallContext, @Query({ schema: AuditQuery }) query: AuditQuery) {
    return this.audit.events(ctx, query);
  }

  @Get('decisions')
  @ApiOperation({ summary: 'Decisions with the policies that made them, newest first' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(DecisionView) })
  decisions(@Ctx() ctx: CallContext, @Query({ schema: DecisionQuery }) query: DecisionQuery) {
    return this.audit.decisions(ctx, query);
  }

  @Get('decisions/:id')
  @ApiOperation({ summary: 'One decision' })
  @ApiResponse({ status: 200, standardSchema: DecisionView })
  decision(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.audit.decision(ctx, id);
  }

  @Post('verify')
  @HttpCode(200)
  @ApiOperation({ summary: 'Seal the chain of the org and verify it' })
  @ApiResponse({ status: 200, standardSchema: Verification })
  verify(@Ctx() ctx: CallContext) {
    return this.audit.verify(ctx);
  }
}
