import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { pageSchema } from '../../platform/http/page.js';
import { IdParam, PageQuery } from '../../platform/http/params.js';
import { OwnCredentialAdmin } from './own-credential-admin.js';
import { UserCredentialAdmin } from './user-credential-admin.js';
import { ApproveTools } from '../upstream.types.js';
import {
  GiveCredential,
  OwnCredentialView,
  UserCredentialDetails,
  UserCredentialView,
} from './user-credential.types.js';

@ApiTags('MCP servers')
@ApiBearerAuth()
@Controller('api/mcp/servers/:id')
export class UserCredentialsController {
  constructor(
    private readonly own: OwnCredentialAdmin,
    private readonly credentials: UserCredentialAdmin,
  ) {}

  @Get('credential')
  @ApiOperation({ summary: 'Headers that the server requires of you, and when you set them' })
  @ApiResponse({ status: 200, standardSchema: OwnCredentialView })
  get(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.own.get(ctx, id);
  }

  @Put('credential')
  @ApiOperation({ summary: 'Set your own credential: your calls use it' })
  @ApiResponse({ status: 200, standardSchema: OwnCredentialView })
  give(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Body({ schema: GiveCredential }) body: GiveCredential,
  ) {
    return this.own.give(ctx, id, body);
  }

  @Delete('credential')
  @HttpCode(204)
  @ApiOperation({ summary: 'Remove your own credential: its connections are closed' })
  @ApiResponse({ status: 204 })
  remove(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.own.remove(ctx, id);
  }

  @Get('credentials')
  @ApiOperation({ summary: 'List the callers that have set a credential' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(UserCredentialView) })
  list(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Query({ schema: PageQuery }) query: PageQuery,
  ) {
    return this.credentials.list(ctx, id, query);
  }

  @Get('credentials/:credentialId')
  @ApiOperation({ summary: 'Credential of one caller, with its quarantined tools' })
  @ApiResponse({ status: 200, standardSchema: UserCredentialDetails })
  show(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Param('credentialId', { schema: IdParam }) credentialId: string,
  ) {
    return this.credentials.show(ctx, id, credentialId);
  }

  @Post('credentials/:credentialId/approve')
  @HttpCode(200)
  @ApiOperation({ summary: 'Approve the current definitions of quarantined tools for that user' })
  @ApiResponse({ status: 200, standardSchema: UserCredentialDetails })
  approve(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Param('credentialId', { schema: IdParam }) credentialId: string,
    @Body({ schema: ApproveTools }) body: ApproveTools,
  ) {
    return this.credentials.approve(ctx, id, credentialId, body);
  }

  @Delete('credentials/:credentialId')
  @HttpCode(204)
  @ApiOperation({ summary: 'Remove the credential of one caller' })
  @ApiResponse({ status: 204 })
  revoke(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Param('credentialId', { schema: IdParam }) credentialId: string,
  ) {
    return this.credentials.revoke(ctx, id, credentialId);
  }
}
