import {
  Body,
  Controller,
  Delete,
  Get,
  Header,
  HttpCode,
  Param,
  Patch,
  Post,
  Put,
  Query,
  StreamableFile,
} from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { pageSchema } from '../../platform/http/page.js';
import { IdParam, PageQuery } from '../../platform/http/params.js';
import { OrgDomainService } from './org-domains.service.js';
import { OrgData } from '../org-data.js';
import { ApiKeyService } from './api-key.service.js';
import { MemberService } from './member.service.js';
import { TokenSecretService } from './token-secret.service.js';
import { OrgService } from '../org.service.js';
import {
  ChangeOrg,
  CreateKey,
  CreateOrg,
  KeyView,
  MemberView,
  NewKeyView,
  NewSecretView,
  OrgDomains,
  OrgView,
  RevokeToken,
  RotateSecret,
  SaveMember,
} from '../org.types.js';

@ApiTags('orgs')
@ApiBearerAuth()
@Controller('api/orgs')
export class OrgController {
  constructor(
    private readonly orgs: OrgService,
    private readonly data: OrgData,
    private readonly named: OrgDomainService,
    private readonly people: MemberService,
    private readonly secrets: TokenSecretService,
  ) {}

  @Get()
  @ApiOperation({ summary: 'The org of the caller; all orgs for an admin of the default org' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(OrgView) })
  list(@Ctx() ctx: CallContext, @Query({ schema: PageQuery }) query: PageQuery) {
    return this.orgs.list(ctx, query);
  }

  @Post()
  @ApiOperation({ summary: 'Create an org' })
  @ApiResponse({ status: 201, standardSchema: OrgView })
  create(@Ctx() ctx: CallContext, @Body({ schema: CreateOrg }) body: CreateOrg) {
    return this.orgs.create(ctx, body);
  }

  @Get(':slug')
  @ApiOperation({ summary: 'One org' })
  @ApiResponse({ status: 200, standardSchema: OrgView })
  get(@Ctx() ctx: CallContext, @Param('slug', { schema: IdParam }) slug: string) {
    return this.orgs.get(ctx, slug);
  }

  @Patch(':slug')
  @ApiOperation({
    summary: 'Change name, default agent, tool timeout, tool names, or trust tier (admins of the default org)',
  })
  @ApiResponse({ status: 200, standardSchema: OrgView })
  change(
    @Ctx() ctx: CallContext,
    @Param('slug', { schema: IdParam }) slug: string,
    @Body({ schema: ChangeOrg }) body: ChangeOrg,
  ) {
    return this.orgs.change(ctx, slug, body);
  }

  @Get(':slug/domains')
  @ApiOperation({ summary: 'Domains that name the org in tokens, besides its slug' })
  @ApiResponse({ status: 200, standardSchema: OrgDomains })
  domains(@Ctx() ctx: CallContext, @Param('slug', { schema: IdParam }) slug: string) {
    return this.named.get(ctx, slug);
  }

  @Put(':slug/domains')
  @ApiOperation({ summary: 'Set the domains that name the org in tokens; for admins of the default org' })
  @ApiResponse({ status: 200, standardSchema: OrgDomains })
  setDomains(
    @Ctx() ctx: CallContext,
    @Param('slug', { schema: IdParam }) slug: string,
    @Body({ schema: OrgDomains }) body: OrgDomains,
  ) {
    return this.named.set(ctx, slug, body);
  }

  @Get(':slug/export')
  @Header('Content-Type', 'application/x-ndjson')
  @ApiOperation({ summary: 'All data of an org without secrets, as JSON lines; the last line has the kind `end`' })
  @ApiResponse({ status: 200, content: { 'application/x-ndjson': {} } })
  async export(@Ctx() ctx: CallContext, @Param('slug', { schema: IdParam }) slug: string) {
    return new StreamableFile(await this.data.export(ctx, slug));
  }

  @Delete(':slug')
  @HttpCode(204)
  @ApiOperation({ summary: 'Delete an org: its credentials stop at once, its data is deleted, its audit stays' })
  @ApiResponse({ status: 204 })
  remove(@Ctx() ctx: CallContext, @Param('slug', { schema: IdParam }) slug: string) {
    return this.orgs.remove(ctx, slug);
  }

  @Get(':slug/members')
  @ApiOperation({ summary: 'Members in order of their subject' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(MemberView) })
  members(
    @Ctx() ctx: CallContext,
    @Param('slug', { schema: IdParam }) slug: string,
    @Query({ schema: PageQuery }) query: PageQuery,
  ) {
    return this.people.list(ctx, slug, query);
  }

  @Post(':slug/members')
  @ApiOperation({ summary: 'Add or change a member' })
  @ApiResponse({ status: 201, standardSchema: MemberView })
  saveMember(
    @Ctx() ctx: CallContext,
    @Param('slug', { schema: IdParam }) slug: string,
    @Body({ schema: SaveMember }) body: SaveMember,
  ) {
    return this.people.save(ctx, slug, body);
  }

  @Delete(':slug/members/:sub')
  @HttpCode(204)
  @ApiOperation({ summary: 'Remove a member; its tokens stop at once' })
  @ApiResponse({ status: 204 })
  removeMember(
    @Ctx() ctx: CallContext,
    @Param('slug', { schema: IdParam }) slug: string,
    @Param('sub', { schema: IdParam }) sub: string,
  ) {
    return this.people.remove(ctx, slug, sub);
  }

  @Post(':slug/secret')
  @ApiOperation({ summary: 'Create a new secret for the tokens of the org; it is shown once' })
  @ApiResponse({ status: 201, standardSchema: NewSecretView })
  rotate(
    @Ctx() ctx: CallContext,
    @Param('slug', { schema: IdParam }) slug: string,
    @Body({ schema: RotateSecret }) body: RotateSecret,
  ) {
    return this.secrets.rotate(ctx, slug, body);
  }
}

@ApiTags('keys')
@ApiBearerAuth()
@Controller('api')
export class KeyController {
  constructor(
    private readonly apiKeys: ApiKeyService,
    private readonly secrets: TokenSecretService,
  ) {}

  @Get('keys')
  @ApiOperation({ summary: 'API keys of the org; never the keys themselves' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(KeyView) })
  list(@Ctx() ctx: CallContext, @Query({ schema: PageQuery }) query: PageQuery) {
    return this.apiKeys.list(ctx, query);
  }

  @Post('keys')
  @ApiOperation({ summary: 'Create an API key; it is shown once' })
  @ApiResponse({ status: 201, standardSchema: NewKeyView })
  create(@Ctx() ctx: CallContext, @Body({ schema: CreateKey }) body: CreateKey) {
    return this.apiKeys.create(ctx, body);
  }

  @Delete('keys/:id')
  @HttpCode(204)
  @ApiOperation({ summary: 'Revoke a key' })
  @ApiResponse({ status: 204 })
  revoke(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.apiKeys.revoke(ctx, id);
  }

  @Post('tokens/revocations')
  @HttpCode(204)
  @ApiOperation({ summary: 'Revoke a token by its jti before it expires' })
  @ApiResponse({ status: 204 })
  revokeToken(@Ctx() ctx: CallContext, @Body({ schema: RevokeToken }) body: RevokeToken) {
    return this.secrets.revokeToken(ctx, body);
  }
}
