import { Injectable } from '@nestjs/common';
import { ToolTasks } from '../../continuations/tool-tasks.js';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { UpstreamCalls, type UpstreamCall } from '../../upstreams/upstream-calls.js';
import { goingOn } from './mcp-task.js';
import type { ToolOutcome } from './tool-call.types.js';
import { asCalled, unknownTool } from './tool-errors.js';

/** Calls the tools of MCP servers and stores the tasks that they answer with. Each server checks its arguments. */
@Injectable()
export class ServerCalls {
  constructor(
    private readonly calls: UpstreamCalls,
    private readonly tasks: ToolTasks,
  ) {}

  /**
   * Calls a tool. Throws as UpstreamCalls.callTool does, with the name that the caller used.
   * @param goesOnAfterMs milliseconds after which a task at the server continues as a task of the gateway; absent when
   * the caller has no way to ask for that task.
   */
  async callTool(ctx: CallContext, call: UpstreamCall, goesOnAfterMs: number | undefined): Promise<ToolOutcome> {
    const { target, calledAs } = call;
    const mayGoOn = target && goesOnAfterMs !== undefined;
    const tasks = mayGoOn ? this.tasks.keeperOf(ctx, { ...call, target }, goesOnAfterMs) : undefined;
    try {
      const result = await this.calls.callTool(ctx, tasks ? { ...call, tasks } : call);
      const task = tasks?.goesOn;
      return task ? { result: goingOn(task), goesOnAs: task.id } : { result };
    } catch (error) {
      if (calledAs === undefined) throw error;
      throw target || RialtoError.from(error).code !== 'not_found' ? asCalled(error, calledAs) : unknownTool(calledAs);
    }
  }
}
