import { Injectable } from '@nestjs/common';
import type { AgentId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import type { Message } from '../../protocol/a2a/model.js';
import { freesItsKey, type IdempotencyKey } from './task-writer.js';

export interface KnownKey {
  readonly payloadHash: string;
  readonly taskId: string;
  readonly answer?: Message;
}

const inUse = `(k.answer is not null or exists (
  select from a2a_tasks t where t.id = k.task_id and not ${freesItsKey('t')}))`;

/**
 * Reads idempotency keys and stores answers under them. The commit of a task claims the key of the task
 * (task-writer.ts).
 */
@Injectable()
export class IdempotencyStore {
  constructor(private readonly pg: Pg) {}

  /** The agent with which an owner uses a key, if any. */
  async agentOf(org: string, owner: string, key: string): Promise<AgentId | undefined> {
    const [row] = await this.pg.rows<{ agent_id: AgentId }>(
      'idempotency-agent',
      `select k.agent_id from published_agents p join a2a_idempotency_keys k on k.org_id = p.org_id and k.agent_id = p.id
       where p.org_id = $1 and k.owner = $2 and k.key = $3 and ${inUse} order by k.created_at desc limit 1`,
      [org, owner, key],
    );
    return row?.agent_id;
  }

  /** A key that is in use. A key is free when its task failed, was canceled, or is gone. */
  async find(org: string, agent: string, owner: string, key: string): Promise<KnownKey | undefined> {
    const [row] = await this.pg.rows<{ payload_hash: string; task_id: string; answer: Message | null }>(
      'idempotency-find',
      `select k.payload_hash, k.task_id, k.answer from a2a_idempotency_keys k
       where k.org_id = $1 and k.agent_id = $2 and k.owner = $3 and k.key = $4 and ${inUse}`,
      [org, agent, owner, key],
    );
    return row && { payloadHash: row.payload_hash, taskId: row.task_id, ...(row.answer && { answer: row.answer }) };
  }

  /** Stores an answer under a free key. Returns false when the key was taken meanwhile. */
  async keepAnswer(
    org: string,
    agent: string,
    owner: string,
    { key, payloadHash }: IdempotencyKey,
    id: string,
    answer: Message,
  ): Promise<boolean> {
    const rows = await this.pg.rows(
      'idempotency-keep',
      `insert into a2a_idempotency_keys (org_id, agent_id, owner, key, payload_hash, task_id, answer) values ($1, $2, $3, $4, $5, $6, $7)
       on conflict do nothing returning key`,
      [org, agent, owner, key, payloadHash, id, JSON.stringify(answer)],
    );
    return rows.length === 1;
  }
}
