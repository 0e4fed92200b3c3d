import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import type { Notice } from '../../kernel/notices.js';
import { Notices } from '../../platform/bus/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import type { JsonRpcId } from '../../protocol/jsonrpc.js';

/** Calls that an MCP client may cancel with `notifications/cancelled`, by org, session and request id. */
@Injectable()
export class RunningCalls {
  private readonly calls = new Map<string, AbortController>();

  constructor(private readonly notices: Notices) {}

  /** Runs a call that `cancelAnywhere` can abort. */
  async runCall<Result>(
    ctx: CallContext,
    session: string,
    id: JsonRpcId,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const key = callKey(ctx.org.id, session, id);
    const controller = new AbortController();
    this.calls.set(key, controller);
    try {
      return await work(ctx.signal ? AbortSignal.any([ctx.signal, controller.signal]) : controller.signal);
    } finally {
      if (this.calls.get(key) === controller) this.calls.delete(key);
    }
  }

  /** Cancels a call in any process that runs it. */
  cancelAnywhere(orgId: string, sessionId: string, requestId: string | number | bigint): void {
    this.notices.tell(undefined, 'mcp.call-cancelled', { orgId, sessionId, requestId });
  }

  @OnNotice('mcp.call-cancelled')
  callCancelled({ orgId, sessionId, requestId }: Notice<'mcp.call-cancelled'>): void {
    this.calls.get(callKey(orgId, sessionId, requestId))?.abort();
  }
}

function callKey(org: string, session: string, id: JsonRpcId): string {
  return `${org} ${session} ${JSON.stringify(id)}`;
}
