import { Injectable } from '@nestjs/common';
import { AuditService } from '../../audit/audit.service.js';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { storableText, type JsonObject } from '../../kernel/json.js';
import { RowWriter } from '../../platform/database/row-writer.js';

/** Facts about a message for the audit: that it was sent and how it ended. Contains nothing of its payload. */
export interface AuditedMessage {
  readonly type: string;
  readonly direction: 'in' | 'out';
  readonly id: string;
  /** Id of the request; present for a reply or an answer. */
  readonly reqId?: string;
  /** Error code of the message; absent when it succeeded. */
  readonly error?: string;
}

const longest = 256;

/** Records each message from and to agents, besides the acts that they cause (AE-70). */
@Injectable()
export class MessageAudit {
  constructor(
    private readonly audit: AuditService,
    private readonly writer: RowWriter,
  ) {}

  /** Records all messages or none. Throws `unavailable` when they cannot be recorded. */
  async recordMessages(ctx: CallContext, messages: readonly AuditedMessage[]): Promise<void> {
    const { org, principal, requestId, surface } = ctx;
    const { kind, id, role } = principal;
    const caller = { principal: { kind, role }, requestId, surface };
    const personal = [{ subject: callerOf(principal), facts: { principal: { id: storableText(id, longest) } } }];
    try {
      const rows = await Promise.all(
        messages.map((message) =>
          this.audit.sealedRowsOf(org.id, 'a2e.message', { ...caller, ...factsOf(message) }, personal),
        ),
      );
      await this.writer.write(rows.flat());
    } catch (cause) {
      throw new RialtoError('unavailable', { message: 'the message could not be recorded', cause });
    }
  }
}

function factsOf({ type, direction, id, reqId, error }: AuditedMessage): JsonObject {
  return {
    verb: storableText(type, longest),
    direction,
    messageId: storableText(id, longest),
    ...(reqId !== undefined && { inReplyTo: storableText(reqId, longest) }),
    outcome: error === undefined ? 'completed' : error === 'mcp_denied' ? 'denied' : 'failed',
    ...(error !== undefined && { error }),
  };
}
