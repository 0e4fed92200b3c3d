import { Injectable } from '@nestjs/common';
import { newId } from '../../kernel/ids.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { Pg } from '../../platform/database/pg.js';
import { isGone } from '../../platform/database/presence.js';

/**
 * Passes answers from the process that received them to the process that holds the call, and passes the outcome back.
 */
@Injectable()
export class SuspendedAnswerStore {
  constructor(private readonly pg: Pg) {}

  /** Stores answers and returns the id of the row. */
  async insertAnswers(org: string, callId: string, answers: JsonObject): Promise<string> {
    const id = newId();
    await this.pg.rows(
      'held-answer-post',
      `
      insert into mcp_held_answers (id, org_id, call_id, answers)
      values (:id, :org, :callId, :answers)`,
      { id, org, callId, answers: JSON.stringify(answers) },
    );
    return id;
  }

  /** Returns the rows of a call that have no outcome yet, oldest first. */
  async findOpen(callId: string): Promise<{ id: string; answers: JsonObject }[]> {
    const rows = await this.pg.rows<{ id: string; answers: unknown }>(
      'held-answer-open',
      `
      select id, answers
      from mcp_held_answers
      where call_id = :callId and outcome is null
      order by id`,
      { callId },
    );
    return rows.map(({ id, answers }) => ({ id, answers: isJsonObject(answers) ? answers : {} }));
  }

  async storeOutcome(id: string, outcome: JsonObject): Promise<void> {
    await this.pg.rows('held-answer-settle', `update mcp_held_answers set outcome = :outcome where id = :id`, {
      id,
      outcome: JSON.stringify(outcome),
    });
  }

  /** Takes the outcome of a row and deletes the row. Reports whether the process that holds the call is gone. */
  async takeOutcome(id: string, holder: number): Promise<{ outcome?: JsonObject; isGone: boolean }> {
    const [taken] = await this.pg.rows<{ outcome: JsonObject }>(
      'held-answer-take',
      `
      delete from mcp_held_answers
      where id = :id and outcome is not null
      returning outcome`,
      { id },
    );
    if (taken) return { outcome: taken.outcome, isGone: false };
    const [row] = await this.pg.rows<{ gone: boolean }>('held-answer-holder', `select ${isGone(':holder')} as gone`, {
      holder,
    });
    return { isGone: row!.gone };
  }

  async drop(id: string): Promise<void> {
    await this.pg.rows('held-answer-drop', `delete from mcp_held_answers where id = :id`, { id });
  }

  async dropOld(): Promise<void> {
    await this.pg.rows('held-answer-late', "delete from mcp_held_answers where created_at < now() - interval '1 hour'");
  }
}
