import { Body, Controller, Get, Header, HttpCode, Param, Post, Query, StreamableFile } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../kernel/call-context.js';
import { Ctx } from '../platform/http/ctx.decorator.js';
import { pageSchema } from '../platform/http/page.js';
import { IdParam } from '../platform/http/params.js';
import { AuditReadService } from './audit-read.service.js';
import { AuditExportService } from './export/audit-export.service.js';
import { ErasureService } from './personal/erasure.service.js';
import {
  AuditEventView,
  AuditQuery,
  DecisionQuery,
  DecisionView,
  Erasure,
  ErasureRequest,
  Verification,
} from './audit.types.js';

@ApiTags('audit')
@ApiBearerAuth()
@Controller('api/audit')
export class AuditController {
  constructor(
    private readonly audit: AuditReadService,
    private readonly exports: AuditExportService,
    private readonly erasures: ErasureService,
  ) {}

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

  @Post('erasures')
  @HttpCode(200)
  @ApiOperation({ summary: 'Make the personal facts of one caller unreadable in the audit of the org' })
  @ApiResponse({ status: 200, standardSchema: Erasure })
  erase(@Ctx() ctx: CallContext, @Body({ schema: ErasureRequest }) body: ErasureRequest) {
    return this.erasures.erase(ctx, body);
  }

  @Get('export')
  @Header('Content-Type', 'application/x-ndjson')
  @ApiOperation({ summary: 'The audit of the org as JSON lines, which `rialto audit verify FILE` verifies offline' })
  @ApiResponse({ status: 200, content: { 'application/x-ndjson': {} } })
  async export(@Ctx() ctx: CallContext) {
    return new StreamableFile(await this.exports.export(ctx));
  }
}
