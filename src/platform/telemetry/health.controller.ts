import { Controller, Get, HttpStatus, Inject, Res } from '@nestjs/common';
import { ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { z } from 'zod';
import { Public } from '../http/public.decorator.js';
import { HealthService } from './health.service.js';
import { VERSION } from './version.js';

const Check = z.object({ status: z.enum(['ok', 'degraded', 'down']), detail: z.string().optional() });
const Readiness = z.object({ status: z.enum(['ok', 'degraded', 'down']), checks: z.record(z.string(), Check) });

/** Name, version and paths, for a person or program that knows only the address. */
const entry = {
  name: VERSION.name,
  version: VERSION.version,
  links: {
    docs: '/docs',
    openapi: '/docs-json',
    health: '/readyz',
    version: '/version',
    mcp: '/mcp',
    agentCard: '/.well-known/agent-card.json',
  },
} as const;

const Entry = z.object({ name: z.string(), version: z.string(), links: z.record(z.string(), z.string()) });

/** Entry point, probes and the version; public. */
@Public()
@ApiTags('operations')
@Controller()
export class HealthController {
  constructor(@Inject(HealthService) private readonly health: HealthService) {}

  @Get()
  @ApiOperation({ summary: 'The version, and paths of the documentation and the doors' })
  @ApiResponse({ status: 200, standardSchema: Entry })
  entry() {
    return entry;
  }

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
