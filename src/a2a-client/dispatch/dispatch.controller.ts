import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { CallContext } from '../../kernel/call-context.js';
import { Ctx } from '../../platform/http/ctx.decorator.js';
import { DispatchExplanationService } from './dispatch-explanation.service.js';
import { DispatchService } from './dispatch.service.js';
import {
  DispatchAnswer,
  DispatchBody,
  DispatchExplanation,
  InvokeBody,
  type DispatchStep,
  type InvokeStep,
} from '../dispatch.types.js';

@ApiTags('dispatch')
@ApiBearerAuth()
@Controller('api/a2a')
export class DispatchController {
  constructor(
    private readonly dispatches: DispatchService,
    private readonly explanations: DispatchExplanationService,
  ) {}

  @Post('invoke')
  @HttpCode(200)
  @ApiOperation({ summary: 'Call a skill of an agent; `{{path}}` in its texts is filled from `context`' })
  @ApiResponse({ status: 200, standardSchema: DispatchAnswer })
  invoke(@Ctx() ctx: CallContext, @Body({ schema: InvokeBody }) body: InvokeStep) {
    return this.dispatches.invoke(ctx, body);
  }

  @Post('dispatch')
  @HttpCode(200)
  @ApiOperation({ summary: 'Have work done by the best agent; 422 `no_agent` gives a reason for each agent' })
  @ApiResponse({ status: 200, standardSchema: DispatchAnswer })
  dispatch(@Ctx() ctx: CallContext, @Body({ schema: DispatchBody }) body: DispatchStep) {
    return this.dispatches.dispatch(ctx, body);
  }

  @Post('dispatch/explain')
  @HttpCode(200)
  @ApiOperation({
    summary: 'Explain which agent a dispatch would choose now, with every factor and exclusion; calls no agent',
  })
  @ApiResponse({ status: 200, standardSchema: DispatchExplanation })
  explain(@Ctx() ctx: CallContext, @Body({ schema: DispatchBody }) body: DispatchStep) {
    return this.explanations.explain(ctx, body);
  }
}
