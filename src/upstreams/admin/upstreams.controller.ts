import { Body, Controller, Delete, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { pageSchema } from '../../platform/http/page.js';
import { IdParam } from '../../platform/http/params.js';
import { ServerViews } from '../server-views.js';
import { UpstreamAdmin } from '../upstream-admin.js';
import { ApproveTools, ChangeServer, RegisterServer, ServerQuery, ServerView } from '../upstream.types.js';

@ApiTags('MCP servers')
@ApiBearerAuth()
@Controller('api/mcp/servers')
export class UpstreamsController {
  constructor(
    private readonly servers: UpstreamAdmin,
    private readonly views: ServerViews,
  ) {}

  @Post()
  @ApiOperation({ summary: 'Register an MCP server: its tools become tools of the org' })
  @ApiResponse({ status: 201, standardSchema: ServerView })
  register(@Ctx() ctx: CallContext, @Body({ schema: RegisterServer }) body: RegisterServer) {
    return this.servers.register(ctx, body);
  }

  @Get()
  @ApiOperation({ summary: 'MCP servers in order of their ids' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(ServerView) })
  list(@Ctx() ctx: CallContext, @Query({ schema: ServerQuery }) query: ServerQuery) {
    return this.views.list(ctx, query);
  }

  @Get(':id')
  @ApiOperation({ summary: 'One MCP server, with its tools' })
  @ApiResponse({ status: 200, standardSchema: ServerView })
  get(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.views.get(ctx, id);
  }

  @Patch(':id')
  @ApiOperation({ summary: 'Change the given members of an MCP server' })
  @ApiResponse({ status: 200, standardSchema: ServerView })
  change(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Body({ schema: ChangeServer }) body: ChangeServer,
  ) {
    return this.servers.change(ctx, id, body);
  }

  @Post(':id/refresh')
  @HttpCode(200)
  @ApiOperation({ summary: 'Reconnect to an MCP server and read what it offers' })
  @ApiResponse({ status: 200, standardSchema: ServerView })
  refresh(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.servers.refresh(ctx, id);
  }

  @Post(':id/approve')
  @HttpCode(200)
  @ApiOperation({
    summary: 'Approve the current definitions of quarantined tools: all of them, or the named ones',
  })
  @ApiResponse({ status: 200, standardSchema: ServerView })
  approve(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Body({ schema: ApproveTools }) body: ApproveTools,
  ) {
    return this.servers.approve(ctx, id, body);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({ summary: 'Unregister an MCP server: its tools are removed' })
  @ApiResponse({ status: 204 })
  unregister(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.servers.unregister(ctx, id);
  }
}
