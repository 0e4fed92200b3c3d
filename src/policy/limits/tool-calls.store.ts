import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';

/** Counts tool calls by the clock of the database, for all processes together. */
@Injectable()
export class ToolCallsStore {
  constructor(private readonly pg: Pg) {}

  /** Counts one more call. Returns the calls of this minute and its remaining seconds. */
  async countCallOfMinute(org: OrgId, caller: string, tool: string): Promise<{ calls: number; secondsLeft: number }> {
    const [row] = await this.pg.rows<{ calls: number; left: number }>(
      'tool-calls-count',
      `
      insert into tool_calls as t (org_id, caller, tool, minute, calls)
      values (:org, :caller, :tool, date_trunc('minute', now()), 1)
      on conflict (org_id, caller, tool) do update set
        calls = case when t.minute = excluded.minute then t.calls + 1 else 1 end,
        minute = excluded.minute
      returning calls, ceil(extract(epoch from minute + interval '1 minute' - now()))::integer as left`,
      { org, caller, tool },
    );
    return { calls: row!.calls, secondsLeft: Math.max(1, row!.left) };
  }

  async dropOld(): Promise<void> {
    await this.pg.rows('tool-calls-late', `delete from tool_calls where minute < now() - interval '1 hour'`);
  }
}
