import { Injectable } from '@nestjs/common';
import type { RowChange } from '../platform/database/row-writer.js';
import { endRows, keepActive, type EndedCall } from './agents/agent-stats.recorder.js';

/**
 * Row changes for calls that go on after their act. The code that sees the end writes them in the transaction that
 * stores the end.
 */
@Injectable()
export class AgentStats {
  /** Keeps the call active for `forMs` more milliseconds. */
  goesOn(actId: string, forMs: number): RowChange {
    return keepActive(actId, forMs);
  }

  ended(call: EndedCall): RowChange[] {
    return endRows(call);
  }
}
