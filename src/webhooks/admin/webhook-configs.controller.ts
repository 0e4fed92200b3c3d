import { Body, Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { pageSchema } from '../../platform/http/page.js';
import { IdParam } from '../../platform/http/params.js';
import { WebhookConfigsService } from './webhook-configs.service.js';
import { ConfigIdParam, ConfigQuery, ConfigView, NewConfig } from './webhook.types.js';

@ApiTags('webhooks')
@ApiBearerAuth()
@Controller('api/webhooks/configs')
export class WebhookConfigsController {
  constructor(private readonly configs: WebhookConfigsService) {}

  @Get()
  @ApiOperation({
    summary:
      'Push configurations, newest first, without secrets: an admin sees those of the org, other callers see their own',
  })
  @ApiResponse({ status: 200, standardSchema: pageSchema(ConfigView) })
  list(@Ctx() ctx: CallContext, @Query({ schema: ConfigQuery }) query: ConfigQuery) {
    return this.configs.list(ctx, query);
  }

  @Post()
  @ApiOperation({ summary: 'Add a push configuration to a task; a URL that the task already has is a conflict' })
  @ApiResponse({ status: 201, standardSchema: ConfigView })
  create(@Ctx() ctx: CallContext, @Body({ schema: NewConfig }) body: NewConfig) {
    return this.configs.create(ctx, body);
  }

  @Get(':taskId/:id')
  @ApiOperation({ summary: 'One push configuration with its state' })
  @ApiResponse({ status: 200, standardSchema: ConfigView })
  get(
    @Ctx() ctx: CallContext,
    @Param('taskId', { schema: IdParam }) taskId: string,
    @Param('id', { schema: ConfigIdParam }) configId: string,
  ) {
    return this.configs.get(ctx, { taskId, configId });
  }

  @Post(':taskId/:id/activate')
  @HttpCode(200)
  @ApiOperation({ summary: 'Activate a disabled configuration: events from now on are posted' })
  @ApiResponse({ status: 200, standardSchema: ConfigView })
  activate(
    @Ctx() ctx: CallContext,
    @Param('taskId', { schema: IdParam }) taskId: string,
    @Param('id', { schema: ConfigIdParam }) configId: string,
  ) {
    return this.configs.activate(ctx, { taskId, configId });
  }

  @Post(':taskId/:id/deactivate')
  @HttpCode(200)
  @ApiOperation({ summary: 'Disable a configuration: nothing more is posted, and waiting deliveries become dead' })
  @ApiResponse({ status: 200, standardSchema: ConfigView })
  deactivate(
    @Ctx() ctx: CallContext,
    @Param('taskId', { schema: IdParam }) taskId: string,
    @Param('id', { schema: ConfigIdParam }) configId: string,
  ) {
    return this.configs.deactivate(ctx, { taskId, configId });
  }
}
