import { Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { pageSchema } from '../../platform/http/page.js';
import { IdParam } from '../../platform/http/params.js';
import { TaskBrowseService } from './task-browse.service.js';
import { TaskDetail, TaskQuery, TaskSummary } from './task-browse.types.js';

@ApiTags('tasks')
@ApiBearerAuth()
@Controller('api/a2a/tasks')
export class TaskController {
  constructor(private readonly tasks: TaskBrowseService) {}

  @Get()
  @ApiOperation({ summary: 'Tasks of published agents, newest status first; those of others for admins alone' })
  @ApiResponse({ status: 200, standardSchema: pageSchema(TaskSummary) })
  list(@Ctx() ctx: CallContext, @Query({ schema: TaskQuery }) query: TaskQuery) {
    return this.tasks.list(ctx, query);
  }

  @Get(':id')
  @ApiOperation({ summary: 'One task with its log' })
  @ApiResponse({ status: 200, standardSchema: TaskDetail })
  get(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.tasks.get(ctx, id);
  }

  @Post(':id/cancel')
  @HttpCode(200)
  @ApiOperation({ summary: 'Cancel a task' })
  @ApiResponse({ status: 200, standardSchema: TaskSummary })
  cancel(@Ctx() ctx: CallContext, @Param('id', { schema: IdParam }) id: string) {
    return this.tasks.cancel(ctx, id);
  }
}
