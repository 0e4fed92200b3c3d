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
    summary:
      'Create a signing secret for the webhooks of the org, shown once; earlier secrets stay active for graceSeconds',
  })
  @ApiResponse({ status: 201, standardSchema: NewWebhookSecretView })
  makeSecret(@Ctx() ctx: CallContext, @Body({ schema: MakeSecret }) body: MakeSecret) {
    return this.secrets.create(ctx, body);
  }

  @Get('secrets')
  @ApiOperation({ summary: 'Active signing secrets, newest first, without their values' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(WebhookSecretView) })
  listSecrets(@Ctx() ctx: CallContext) {
    return this.secrets.list(ctx);
  }

  @Delete('secrets/:id')
  @HttpCode(204)
  @ApiOperation({ summary: 'End a signing secret at once' })
  @ApiResponse({ status: 204 })
  endSecret(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.secrets.endNow(ctx, id);
  }

  @Get('deliveries')
  @ApiOperation({
    summary: 'Deliveries, newest first: an admin sees those of the org, other callers see those of their own tasks',
  })
  @ApiResponse({ status: 200, standardSchema: pageSchema(DeliveryView) })
  list(@Ctx() ctx: CallContext, @Query({ schema: DeliveryQuery }) query: DeliveryQuery) {
    return this.deliveries.list(ctx, query);
  }

  @Get('deliveries/summary')
  @ApiOperation({ summary: 'Number of deliveries by state, for the last day or a range' })
  @ApiResponse({ status: 200, standardSchema: DeliverySummary })
  summary(@Ctx() ctx: CallContext, @Query({ schema: SummaryQuery }) query: SummaryQuery) {
    return this.deliveries.summary(ctx, query);
  }

  @Get('deliveries/:id')
  @ApiOperation({ summary: 'One delivery with its body and its attempts' })
  @ApiResponse({ status: 200, standardSchema: DeliveryDetail })
  get(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.deliveries.get(ctx, id);
  }

  @Post('deliveries/replay')
  @HttpCode(200)
  @ApiOperation({ summary: 'Replay matching deliveries, oldest first, at most 1,000 at once' })
  @ApiResponse({ status: 200, standardSchema: Replayed })
  replay(@Ctx() ctx: CallContext, @Body({ schema: ReplayDeliveries }) body: ReplayDeliveries) {
    return this.deliveries.replay(ctx, body);
  }

  @Post('deliveries/:id/redeliver')
  @HttpCode(200)
  @ApiOperation({ summary: 'Redeliver one: the same id and body, with the full retry schedule' })
  @ApiResponse({ status: 200, standardSchema: DeliveryView })
  redeliver(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.deliveries.redeliver(ctx, id);
  }

  @Post('test')
  @HttpCode(200)
  @ApiOperation({ summary: 'Post a signed test event to a receiver, and return its answer' })
  @ApiResponse({ status: 200, standardSchema: WebhookTestResult })
  test(@Ctx() ctx: CallContext, @Body({ schema: TestWebhook }) body: TestWebhook) {
    return this.tests.testReceiver(ctx, body);
  }
}
