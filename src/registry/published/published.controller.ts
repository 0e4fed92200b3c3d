import { Body, Controller, Delete, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { pageSchema } from '../../platform/http/page.js';
import { IdParam } from '../../platform/http/params.js';
import { EncryptionKeysService } from './encryption-keys.service.js';
import { PublishedReadService } from './published-read.service.js';
import { PublishingService } from './publishing.service.js';
import {
  ChangePublished,
  ExecutorSecretView,
  KeysView,
  NewPublishedView,
  PublishAgent,
  PublishedQuery,
  PublishedView,
  PublishKeys,
} from './publishing.types.js';

@ApiTags('published agents')
@ApiBearerAuth()
@Controller('api/a2a/published')
export class PublishedController {
  constructor(
    private readonly agents: PublishedReadService,
    private readonly publishing: PublishingService,
    private readonly keys: EncryptionKeysService,
  ) {}

  @Post()
  @ApiOperation({ summary: 'Publish an agent' })
  @ApiResponse({ status: 201, standardSchema: NewPublishedView })
  create(@Ctx() ctx: CallContext, @Body({ schema: PublishAgent }) body: PublishAgent) {
    return this.publishing.create(ctx, body);
  }

  @Get()
  @ApiOperation({ summary: 'Published agents in order of their name' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(PublishedView) })
  list(@Ctx() ctx: CallContext, @Query({ schema: PublishedQuery }) query: PublishedQuery) {
    return this.agents.list(ctx, query);
  }

  @Get(':id')
  @ApiOperation({ summary: 'One agent, by id or name' })
  @ApiResponse({ status: 200, standardSchema: PublishedView })
  get(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.agents.get(ctx, id);
  }

  @Patch(':id')
  @ApiOperation({ summary: 'Change the given members; null clears a member' })
  @ApiResponse({ status: 200, standardSchema: NewPublishedView })
  change(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Body({ schema: ChangePublished }) body: ChangePublished,
  ) {
    return this.publishing.change(ctx, id, body);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({ summary: 'Archive an agent: its doors close, its name becomes free, its tasks stay' })
  @ApiResponse({ status: 204 })
  archive(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.publishing.archive(ctx, id);
  }

  @Post(':id/keys')
  @ApiOperation({ summary: 'Publish public keys for end-to-end encryption; older keys stay' })
  @ApiResponse({ status: 201, standardSchema: KeysView })
  publishKeys(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Body({ schema: PublishKeys }) body: PublishKeys,
  ) {
    return this.keys.publish(ctx, id, body);
  }

  @Post(':id/secret')
  @ApiOperation({ summary: 'Create a new secret for its http or mailbox executor; it is shown once' })
  @ApiResponse({ status: 201, standardSchema: ExecutorSecretView })
  rotateSecret(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.publishing.rotateSecret(ctx, id);
  }
}
