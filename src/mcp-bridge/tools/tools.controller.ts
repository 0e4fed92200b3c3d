import { Body, Controller, Get, HttpCode, Post, Query, Res } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { ServerResponse } from 'node:http';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { limitHeaders } from '../../platform/http/limit-headers.js';
import { pageSchema } from '../../platform/http/page.js';
import { ToolDesk } from './tool-desk.js';
import { CalledTool, CallTool, ToolQuery, ToolView } from './tools.types.js';

@ApiTags('MCP tools')
@ApiBearerAuth()
@Controller('api/mcp/tools')
export class ToolsController {
  constructor(private readonly tools: ToolDesk) {}

  @Get()
  @ApiOperation({ summary: 'Tools of the org in order of their names: skills of agents, and tools of MCP servers' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(ToolView) })
  list(@Ctx() ctx: CallContext, @Query({ schema: ToolQuery }) query: ToolQuery) {
    return this.tools.listTools(ctx, query);
  }

  @Post('call')
  @HttpCode(200)
  @ApiOperation({ summary: 'Call a tool of an agent or MCP server by its name' })
  @ApiResponse({ status: 200, standardSchema: CalledTool })
  call(
    @Ctx() ctx: CallContext,
    @Body({ schema: CallTool }) body: CallTool,
    @Res({ passthrough: true }) response: ServerResponse,
  ) {
    return this.tools.callTool({ ...ctx, tellLimit: limitHeaders(response) }, body);
  }
}
