import { Body, Controller, HttpCode, Param, Post, UseGuards } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import { IdParam } from '../../platform/http/params.js';
import { Public } from '../../platform/http/public.decorator.js';
import { ExecutionReport, ReportView, type ExecutionEvent } from './execution-events.js';
import { ExecutionGuard, ReportedBy, type Reporter } from './execution.guard.js';
import { Executions } from './executions.js';

/** Endpoint for reports of external workers. It has its own guard, because their token is not valid anywhere else. */
@ApiTags('executions')
@ApiBearerAuth()
@Public()
@UseGuards(ExecutionGuard)
@Controller('api/executions')
export class ExecutionsController {
  constructor(private readonly executions: Executions) {}

  @Post(':taskId/events')
  @HttpCode(200)
  @ApiOperation({
    summary:
      'Report on a task: one event or a list that is applied completely or not at all; ' +
      'an event with a known id changes nothing',
  })
  @ApiResponse({ status: 200, standardSchema: ReportView })
  report(
    @ReportedBy() reporter: Reporter,
    @Param('taskId', { schema: IdParam }) taskId: string,
    @Body({ schema: ExecutionReport }) events: ExecutionEvent[],
  ) {
    return this.executions.report(reporter, taskId, events);
  }
}
