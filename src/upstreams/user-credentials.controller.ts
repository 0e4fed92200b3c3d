import { Body, Controller, Delete, Get, HttpCode, Param, Put, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../kernel/call-context.js';
import { Ctx } from '../platform/http/ctx.decorator.js';
import { pageSchema } from '../platform/http/page.js';
import { IdParam, PageQuery } from '../platform/http/params.js';
import { UserCredentialAdmin } from './user-credential-admin.service.js';
import { GiveCredential, OwnCredentialView, UserCredentialView } from './user-credential.types.js';

@ApiTags('MCP servers')
@ApiBearerAuth()
@Controller('api/mcp/servers/:id')
export class UserCredentialsController {
  constructor(private readonly credentials: UserCredentialAdmin) {}

  @Get('credential')
  @ApiOperation({ summary: 'What the server wants of you, and since when it has it' })
  @ApiResponse({ status: 200, standardSchema: OwnCredentialView })
  get(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.credentials.get(ctx, id);
  }

  @Put('credential')
  @ApiOperation({ summary: 'Give a credential of your own: your calls go by it' })
  @ApiResponse({ status: 200, standardSchema: OwnCredentialView })
  give(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Body({ schema: GiveCredential }) body: GiveCredential,
  ) {
    return this.credentials.give(ctx, id, body);
  }

  @Delete('credential')
  @HttpCode(204)
  @ApiOperation({ summary: 'Take your own back: connections by it are closed' })
  @ApiResponse({ status: 204 })
  remove(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.credentials.remove(ctx, id);
  }

  @Get('credentials')
  @ApiOperation({ summary: 'Who has given one, and since when' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(UserCredentialView) })
  list(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Query({ schema: PageQuery }) query: PageQuery,
  ) {
    return this.credentials.list(ctx, id, query);
  }

  @Delete('credentials/:credentialId')
  @HttpCode(204)
  @ApiOperation({ summary: 'Take back the one of somebody' })
  @ApiResponse({ status: 204 })
  revoke(
    @Ctx() ctx: CallContext,
    @Param('id', { schema: IdParam }) id: string,
    @Param('credentialId', { schema: IdParam }) credentialId: string,
  ) {
    return this.credentials.revoke(ctx, id, credentialId);
  }
}
