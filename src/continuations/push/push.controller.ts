import { Controller, HttpCode, Param, Post, Req, UseGuards } from '@nestjs/common';
import { ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { DoorRequest } from '../../platform/http/http.types.js';
import { IdParam } from '../../platform/http/params.js';
import { Public } from '../../platform/http/public.decorator.js';
import { PushDoor } from './push-door.js';
import { PushedFor, PushGuard } from './push.guard.js';
import type { PushKey } from './push-tokens.js';

/**
 * Endpoint for pushes of remote agents. Its own guard checks the token, which is no credential for any other
 * endpoint.
 */
@ApiTags('continuations')
@Public()
@UseGuards(PushGuard)
@Controller('api/a2a/pushes')
export class PushController {
  constructor(private readonly door: PushDoor) {}

  @Post(':token')
  @HttpCode(204)
  @ApiOperation({ summary: 'Push notification of a remote agent: the gateway polls its task now and ignores the body' })
  @ApiResponse({ status: 204 })
  receive(@PushedFor() key: PushKey, @Req() request: DoorRequest, @Param('token', { schema: IdParam }) _token: string) {
    return this.door.receive(key, request);
  }
}
