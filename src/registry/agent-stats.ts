import { Injectable } from '@nestjs/common';
import type { RowChange } from '../platform/database/row-writer.js';
import { endRows, keepActive, type EndedCall } from './agents/agent-stats.recorder.js';

/** Load and outcome of calls whose work goes on after their act: counted by whoever sees its end, in the commit of that end. */
@Injectable()
export class AgentStats {
  /** The call counts as active for so many milliseconds more. */
  goesOn(actId: string, forMs: number): RowChange {
    return keepActive(actId, forMs);
  }

  ended(call: EndedCall): RowChange[] {
    return endRows(call);
  }
}
