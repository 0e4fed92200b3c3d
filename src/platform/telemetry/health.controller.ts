import { Controller, Get, HttpStatus, Inject, Res } from '@nestjs/common';
import { ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { z } from 'zod';
import { Public } from '../http/public.decorator.js';
import { HealthService } from './health.service.js';
import { VERSION } from './version.js';

const Check = z.object({ status: z.enum(['ok', 'degraded', 'down']), detail: z.string().optional() });
const Readiness = z.object({ status: z.enum(['ok', 'degraded', 'down']), checks: z.record(z.string(), Check) });

/** Probes and the version; public. */
@Public()
@ApiTags('operations')
@Controller()
export class HealthController {
  constructor(@Inject(HealthService) private readonly health: HealthService) {}

  @Get('livez')
  @ApiOperation({ summary: 'The process answers' })
  live() {
    return { status: 'ok' };
  }

  @Get('readyz')
  @ApiOperation({ summary: 'Whether this process accepts requests; 503 when not' })
  @ApiResponse({ status: 200, standardSchema: Readiness })
  async ready(@Res({ passthrough: true }) response: Response) {
    const readiness = await this.health.checkReadiness();
    response.status(readiness.status === 'down' ? HttpStatus.SERVICE_UNAVAILABLE : HttpStatus.OK);
    return readiness;
  }

  @Get('version')
  @ApiOperation({ summary: 'The running version' })
  version() {
    return VERSION;
  }
}
