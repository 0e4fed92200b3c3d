import { Controller, Get, Param, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { pageSchema } from '../../platform/http/page.js';
import { ConversationService } from './conversation.service.js';
import {
  ContextParam,
  ConversationDetail,
  ConversationQuery,
  ConversationSummary,
  MessagesQuery,
} from './conversation.types.js';

@ApiTags('conversations')
@ApiBearerAuth()
@Controller('api/a2a/conversations')
export class ConversationController {
  constructor(private readonly conversations: ConversationService) {}

  @Get()
  @ApiOperation({
    summary: 'Conversations with published agents, newest status first; those of others for admins alone',
  })
  @ApiResponse({ status: 200, standardSchema: pageSchema(ConversationSummary) })
  list(@Ctx() ctx: CallContext, @Query({ schema: ConversationQuery }) query: ConversationQuery) {
    return this.conversations.list(ctx, query);
  }

  @Get(':contextId')
  @ApiOperation({ summary: 'One conversation with its messages, oldest first, in pages of whole tasks' })
  @ApiResponse({ status: 200, standardSchema: ConversationDetail })
  get(
    @Ctx() ctx: CallContext,
    @Param('contextId', { schema: ContextParam }) contextId: string,
    @Query({ schema: MessagesQuery }) query: MessagesQuery,
  ) {
    return this.conversations.get(ctx, contextId, query);
  }
}
