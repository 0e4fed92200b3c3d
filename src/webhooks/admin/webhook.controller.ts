import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { pageSchema } from '../../platform/http/page.js';
import { IdParam } from '../../platform/http/params.js';
import { DeliveryLogService } from './delivery-log.service.js';
import { WebhookSecretsService } from './webhook-secrets.service.js';
import { WebhookTestService } from './webhook-test.service.js';
import {
  DeliveryDetail,
  DeliveryQuery,
  DeliverySummary,
  DeliveryView,
  MakeSecret,
  NewWebhookSecretView,
  Replayed,
  ReplayDeliveries,
  SummaryQuery,
  TestWebhook,
  WebhookSecretView,
  WebhookTestResult,
} from './webhook.types.js';

@ApiTags('webhooks')
@ApiBearerAuth()
@Controller('api/webhooks')
export class WebhookController {
  constructor(
    private readonly secrets: WebhookSecretsService,
    private readonly deliveries: DeliveryLogService,
    private readonly tests: WebhookTestService,
  ) {}

  @Post('secrets')
  @ApiOperation({
    summary: 'Make a secret that webhooks of the org are signed with, shown once; those before it sign on for a while',
  })
  @ApiResponse({ status: 201, standardSchema: NewWebhookSecretView })
  makeSecret(@Ctx() ctx: CallContext, @Body({ schema: MakeSecret }) body: MakeSecret) {
    return this.secrets.make(ctx, body);
  }

  @Get('secrets')
  @ApiOperation({ summary: 'Secrets that sign at present, the newest first; never the secrets themselves' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(WebhookSecretView) })
  listSecrets(@Ctx() ctx: CallContext) {
    return this.secrets.list(ctx);
  }

  @Delete('secrets/:id')
  @HttpCode(204)
  @ApiOperation({ summary: 'End a secret: it signs no more' })
  @ApiResponse({ status: 204 })
  endSecret(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.secrets.end(ctx, id);
  }

  @Get('deliveries')
  @ApiOperation({
    summary: 'Deliveries, the newest first: of the org for an admin, of their own tasks for everyone else',
  })
  @ApiResponse({ status: 200, standardSchema: pageSchema(DeliveryView) })
  list(@Ctx() ctx: CallContext, @Query({ schema: DeliveryQuery }) query: DeliveryQuery) {
    return this.deliveries.list(ctx, query);
  }

  @Get('deliveries/summary')
  @ApiOperation({ summary: 'How many deliveries are in which state, of the last day or a range' })
  @ApiResponse({ status: 200, standardSchema: DeliverySummary })
  summary(@Ctx() ctx: CallContext, @Query({ schema: SummaryQuery }) query: SummaryQuery) {
    return this.deliveries.summary(ctx, query);
  }

  @Get('deliveries/:id')
  @ApiOperation({ summary: 'One delivery with its body and its tries' })
  @ApiResponse({ status: 200, standardSchema: DeliveryDetail })
  get(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.deliveries.get(ctx, id);
  }

  @Post('deliveries/replay')
  @HttpCode(200)
  @ApiOperation({ summary: 'Deliver anew what matches, the oldest first, at most 1,000 at once' })
  @ApiResponse({ status: 200, standardSchema: Replayed })
  replay(@Ctx() ctx: CallContext, @Body({ schema: ReplayDeliveries }) body: ReplayDeliveries) {
    return this.deliveries.replay(ctx, body);
  }

  @Post('deliveries/:id/redeliver')
  @HttpCode(200)
  @ApiOperation({ summary: 'Deliver one anew: the same id and body, the whole schedule' })
  @ApiResponse({ status: 200, standardSchema: DeliveryView })
  redeliver(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.deliveries.redeliver(ctx, id);
  }

  @Post('test')
  @HttpCode(200)
  @ApiOperation({ summary: 'Post a test event to a receiver, signed like any other, and say what it answered' })
  @ApiResponse({ status: 200, standardSchema: WebhookTestResult })
  test(@Ctx() ctx: CallContext, @Body({ schema: TestWebhook }) body: TestWebhook) {
    return this.tests.run(ctx, body);
  }
}
