import { Injectable } from '@nestjs/common';
import type { AgentId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import type { Message } from '../../protocol/a2a/model.js';
import { freesItsKey, orTakeFreeKey } from './idempotency-keys.js';
import type { IdempotencyKey } from './task-writer.js';

export interface KnownKey {
  readonly payloadHash: string;
  readonly taskId: string;
  readonly answer?: Message;
}

/** The caller and the agent within which a key is unique. */
export interface KeyScope {
  readonly org: string;
  readonly agent: string;
  readonly owner: string;
}

const inUse = `(
  k.answer is not null
  or exists (
    select
    from a2a_tasks t
    where t.id = k.task_id and not ${freesItsKey('t')}
  )
)`;

/**
 * Reads idempotency keys and stores answers under them. The commit of a task claims the key of the task
 * (task-writer.ts).
 */
@Injectable()
export class IdempotencyStore {
  constructor(private readonly pg: Pg) {}

  /** The agent with which an owner uses a key, if any. */
  async findAgent(org: string, owner: string, key: string): Promise<AgentId | undefined> {
    const [row] = await this.pg.rows<{ agentId: AgentId }>(
      'idempotency-agent',
      `
      select k.agent_id as "agentId"
      from published_agents p
      join a2a_idempotency_keys k on k.org_id = p.org_id and k.agent_id = p.id
      where p.org_id = :org and k.owner = :owner and k.key = :key and ${inUse}
      order by k.created_at desc
      limit 1`,
      { org, owner, key },
    );
    return row?.agentId;
  }

  /** A key that is in use. A key is free when its task failed, was canceled, or is gone. */
  async findKey({ org, agent, owner }: KeyScope, key: string): Promise<KnownKey | undefined> {
    const [row] = await this.pg.rows<{ payloadHash: string; taskId: string; answer: Message | null }>(
      'idempotency-find',
      `
      select k.payload_hash as "payloadHash", k.task_id as "taskId", k.answer
      from a2a_idempotency_keys k
      where k.org_id = :org and k.agent_id = :agent and k.owner = :owner and k.key = :key and ${inUse}`,
      { org, agent, owner, key },
    );
    return row && { ...row, answer: row.answer ?? undefined };
  }

  /** Stores an answer under a free key. Returns false when the key was taken meanwhile. */
  async keepAnswer(
    { org, agent, owner }: KeyScope,
    { key, payloadHash }: IdempotencyKey,
    id: string,
    answer: Message,
  ): Promise<boolean> {
    const rows = await this.pg.rows(
      'idempotency-keep',
      `
      insert into a2a_idempotency_keys as known (org_id, agent_id, owner, key, payload_hash, task_id, answer)
      values (:org, :agent, :owner, :key, :payloadHash, :id, :answer)
      ${orTakeFreeKey}
      returning key`,
      { org, agent, owner, key, payloadHash, id, answer: JSON.stringify(answer) },
    );
    return rows.length === 1;
  }

  /** Deletes the answers that are older than this many days. The key of a task is deleted with the task. */
  async deleteOldAnswers(days: number): Promise<void> {
    await this.pg.rows(
      'answers-retention',
      `
      delete from a2a_idempotency_keys
      where answer is not null and created_at < now() - make_interval(days => :days::int)`,
      { days },
    );
  }
}
