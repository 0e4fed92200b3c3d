import { Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { pageSchema } from '../../platform/http/page.js';
import { IdParam } from '../../platform/http/params.js';
import { ContinuationService } from '../continuation.service.js';
import { ContinuationQuery, ContinuationView } from './continuation.types.js';

@ApiTags('continuations')
@ApiBearerAuth()
@Controller('api/a2a/continuations')
export class ContinuationController {
  constructor(private readonly continuations: ContinuationService) {}

  @Get()
  @ApiOperation({ summary: 'Remote tasks that go on after their calls, newest first' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(ContinuationView) })
  list(@Ctx() ctx: CallContext, @Query({ schema: ContinuationQuery }) query: ContinuationQuery) {
    return this.continuations.list(ctx, query);
  }

  @Get(':id')
  @ApiOperation({ summary: 'One continuation' })
  @ApiResponse({ status: 200, standardSchema: ContinuationView })
  get(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.continuations.get(ctx, id);
  }

  @Post(':id/retry')
  @HttpCode(200)
  @ApiOperation({ summary: 'Poll the remote task now' })
  @ApiResponse({ status: 200, standardSchema: ContinuationView })
  retry(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.continuations.retry(ctx, id);
  }

  @Post(':id/fail')
  @HttpCode(200)
  @ApiOperation({ summary: 'Give up: the task fails, and the gateway cancels the remote task' })
  @ApiResponse({ status: 200, standardSchema: ContinuationView })
  fail(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.continuations.giveUp(ctx, id);
  }
}
