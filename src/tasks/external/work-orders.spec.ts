import { createSecretKey } from 'node:crypto';
import { LineageSeal } from '../../platform/secrets/lineage.js';
import { Vault } from '../../platform/secrets/vault.js';
import type { Message } from '../../protocol/a2a/model.js';
import { ExecutionTokens } from '../execution-tokens.js';
import { openTask } from '../lifecycle/task.lifecycle.js';
import { originOf } from '../task-verbs.js';
import type { StoredTask } from '../task.types.js';
import { WorkOrders } from './work-orders.js';

const now = Date.parse('2026-01-01T00:00:00Z');
const seal = new LineageSeal(createSecretKey(Buffer.alloc(32, 1)));
const orders = new WorkOrders(new ExecutionTokens(new Vault(Buffer.alloc(32, 2))), seal, {
  A2A_PROCESSING_LIFETIME_MAX_MS: 60_000,
});
const agent = { id: 'a-1', org: { id: 'o-1', slug: 'acme' } } as Parameters<WorkOrders['orderFor']>[0]['agent'];
const principal = { kind: 'user', id: 'bob', role: 'member', groups: ['ops'] } as const;
const message: Message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] };
const taskWith = (more: Partial<StoredTask> = {}): StoredTask => {
  const seed = {
    id: 't-1' as StoredTask['id'],
    orgId: agent.org.id,
    agentId: agent.id,
    agentName: 'x',
    contextId: 'c',
  };
  const step = { now, newId: () => 'id', maxWeight: 1_000 };
  return { ...openTask({ ...seed, principal, depth: 0 }, message, step).task, ...more };
};
const orderOf = (task: StoredTask, epoch?: number) =>
  orders.orderFor({ agent, task, message, earlier: [], principal: { ...principal, role: 'viewer' }, epoch });

describe('(P1, P8) the work order of a service or a worker', () => {
  it('names the caller with its org and its current groups and role', () => {
    expect(orderOf(taskWith()).caller).toEqual({
      kind: 'user',
      subject: 'bob',
      org: 'acme',
      role: 'viewer',
      groups: ['ops'],
      trustTier: 0,
    });
  });

  it('has headers for onward calls: a hop deeper, with the agent in the lineage, with the trace of the caller', () => {
    const trace = { traceId: '0'.repeat(31) + '1', spanId: '0'.repeat(15) + '2', sampled: true, state: 'v=1' };
    const lineage = { path: ['https://far.example'], deadlineAt: now + 5_000 };
    const { headers } = orderOf(taskWith({ depth: 1, ...originOf({ lineage, trace }) }));
    expect(headers).toEqual({
      traceparent: `00-${trace.traceId}-${trace.spanId}-01`,
      tracestate: 'v=1',
      'x-rialto-depth': '2',
      'x-rialto-lineage': expect.any(String),
    });
    expect(seal.openLineage(headers['x-rialto-lineage']!)).toEqual({
      depth: 2,
      path: ['https://far.example', 'published:a-1'],
      deadlineAt: now + 5_000,
    });
  });

  it('has these headers also for a task without a lineage or a trace', () => {
    const { headers } = orderOf(taskWith());
    expect(headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/);
    expect(seal.openLineage(headers['x-rialto-lineage']!)).toEqual({ depth: 1, path: ['published:a-1'] });
  });

  it.each([
    ['the deadline of the call behind it', { lineage: { path: [], deadlineAt: now + 5_000 } }, undefined, now + 5_000],
    ['the lifetime of a working task', {}, undefined, now + 60_000],
    ['a day in a mailbox', {}, 3, now + 86_400_000],
  ])('has a deadline: %s', (_, more, epoch, deadline) => {
    expect(orderOf(taskWith(more), epoch).deadline).toBe(new Date(deadline).toISOString());
  });

  it('has a token for its lease', () => {
    expect(orderOf(taskWith(), 3).token).toMatch(/^rx1\.t-1\.3\./);
    expect(orderOf(taskWith()).token).toMatch(/^rx1\.t-1\.[^.]+$/);
  });
});
