import { Body, Controller, Delete, Get, Header, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { pageSchema } from '../../platform/http/page.js';
import { IdParam } from '../../platform/http/params.js';
import { AgentQuery, AgentView, ApproveCard, CardChangeView, ChangeAgent, RegisterAgent } from '../registry.types.js';
import { AgentAdminService } from './agent-admin.service.js';
import { AgentReadService } from './agent-read.service.js';

@ApiTags('registered agents')
@ApiBearerAuth()
@Controller('api/a2a/agents')
export class RegistryController {
  constructor(
    private readonly agents: AgentReadService,
    private readonly admin: AgentAdminService,
  ) {}

  @Post()
  @ApiOperation({ summary: 'Register an outside agent by its base URL or the URL of its card' })
  @ApiResponse({ status: 201, standardSchema: AgentView })
  register(@Ctx() ctx: CallContext, @Body({ schema: RegisterAgent }) body: RegisterAgent) {
    return this.admin.register(ctx, body);
  }

  @Get()
  @ApiOperation({ summary: 'Registered agents in order of their slug' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(AgentView) })
  list(@Ctx() ctx: CallContext, @Query({ schema: AgentQuery }) query: AgentQuery) {
    return this.agents.list(ctx, query);
  }

  @Get(':id')
  @ApiOperation({ summary: 'One agent, by id or slug' })
  @ApiResponse({ status: 200, standardSchema: AgentView })
  get(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.agents.get(ctx, id);
  }

  @Get(':id/card')
  @Header('Content-Type', 'application/json; charset=utf-8')
  @ApiOperation({ summary: 'The card of an agent, byte for byte as it was received' })
  card(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.agents.card(ctx, id);
  }

  @Get(':id/changes')
  @ApiOperation({ summary: 'The changes of its card, newest first' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(CardChangeView) })
  changes(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.agents.changes(ctx, id);
  }

  @Patch(':id')
  @ApiOperation({ summary: 'Change trust level, timeout or credential' })
  @ApiResponse({ status: 200, standardSchema: AgentView })
  change(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Body({ schema: ChangeAgent }) body: ChangeAgent,
  ) {
    return this.admin.change(ctx, id, body);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({ summary: 'Remove an agent and its tools' })
  @ApiResponse({ status: 204 })
  remove(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.admin.remove(ctx, id);
  }

  @Post(':id/approve')
  @HttpCode(200)
  @ApiOperation({ summary: 'Approve the changed card of an agent in quarantine, by the hash of the reviewed card' })
  @ApiResponse({ status: 200, standardSchema: AgentView })
  approve(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Body({ schema: ApproveCard }) body: ApproveCard,
  ) {
    return this.admin.approve(ctx, id, body);
  }

  @Post(':id/refetch')
  @HttpCode(200)
  @ApiOperation({ summary: 'Fetch its card now' })
  @ApiResponse({ status: 200, standardSchema: AgentView })
  refetch(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.admin.refetch(ctx, id);
  }
}
