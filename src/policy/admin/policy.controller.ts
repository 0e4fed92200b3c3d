import { Body, Controller, Delete, Get, Header, HttpCode, Param, Post, Put, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { pageSchema } from '../../platform/http/page.js';
import { IdParam, PageQuery } from '../../platform/http/params.js';
import { cedarSchema } from '../cedar/cedar-schema.js';
import { PolicyService } from '../policy.service.js';
import { PolicyTestService } from '../policy-test.service.js';
import {
  PolicyVersionView,
  PolicyView,
  ReplacePolicy,
  SavePolicy,
  TemplateView,
  TestPolicy,
  TestResult,
} from '../policy.types.js';
import { policyTemplates } from '../cedar/templates.js';

@ApiTags('policies')
@ApiBearerAuth()
@Controller('api/policies')
export class PolicyController {
  constructor(
    private readonly policies: PolicyService,
    private readonly tests: PolicyTestService,
  ) {}

  @Get()
  @ApiOperation({ summary: 'Policies of the org in order of their name' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(PolicyView) })
  list(@Ctx() ctx: CallContext, @Query({ schema: PageQuery }) query: PageQuery) {
    return this.policies.list(ctx, query);
  }

  @Post()
  @ApiOperation({ summary: 'Store a policy; it applies at once' })
  @ApiResponse({ status: 201, standardSchema: PolicyView })
  create(@Ctx() ctx: CallContext, @Body({ schema: SavePolicy }) body: SavePolicy) {
    return this.policies.create(ctx, body);
  }

  @Get('templates')
  @ApiOperation({ summary: 'Templates with their typed inputs' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(TemplateView) })
  templates() {
    return { items: policyTemplates, nextCursor: null };
  }

  @Get('schema')
  @Header('Content-Type', 'text/plain; charset=utf-8')
  @ApiOperation({ summary: 'The vocabulary of policies, in Cedar schema syntax' })
  schema() {
    return cedarSchema;
  }

  @Post('test')
  @HttpCode(200)
  @ApiOperation({ summary: 'Test whether a call is allowed, and which policy decides it' })
  @ApiResponse({ status: 200, standardSchema: TestResult })
  test(@Ctx() ctx: CallContext, @Body({ schema: TestPolicy }) body: TestPolicy) {
    return this.tests.test(ctx, body);
  }

  @Get(':id')
  @ApiOperation({ summary: 'One policy, by id or name' })
  @ApiResponse({ status: 200, standardSchema: PolicyView })
  get(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.policies.get(ctx, id);
  }

  @Put(':id')
  @ApiOperation({ summary: 'Store a new version' })
  @ApiResponse({ status: 200, standardSchema: PolicyView })
  replace(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Body({ schema: ReplacePolicy }) body: ReplacePolicy,
  ) {
    return this.policies.replace(ctx, id, body);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({ summary: 'Remove a policy; its versions are kept' })
  @ApiResponse({ status: 204 })
  remove(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.policies.remove(ctx, id);
  }

  @Get(':id/versions')
  @ApiOperation({ summary: 'All versions of a policy, newest first' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(PolicyVersionView) })
  versions(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.policies.versions(ctx, id);
  }
}
