import { z } from 'zod';

const orgAt = z.object({ orgId: z.string() });
/**
 * Owner of the changed credentials: one caller (`callerOf`), all callers of a kind, or one token (its jti). Without any
 * of them: the whole org.
 */
const credentialOwner = { caller: z.string().optional(), kind: z.string().optional(), tokenId: z.string().optional() };
const agentAt = z.object({ orgId: z.string(), agentId: z.string() });

/**
 * Notices: facts about the past, with ids only, at most a hint. They are sent after the commit. A listener enqueues a
 * job, drops a cache entry, wakes a stream or counts, and does nothing else.
 */
export const notices = {
  'agent.card-changed': agentAt,
  'published.changed': agentAt,
  'policy.changed': orgAt,
  'credentials.changed': orgAt.extend(credentialOwner),
  'org.changed': orgAt,
  'audit.erased': orgAt,
  'task.event-appended': z.object({ taskId: z.string(), seq: z.number() }),
  'task.cancel-wished': z.object({ taskId: z.string() }),
  'continuation.rung': z.object({ taskId: z.string() }),
  'mailbox.filled': z.object({ agentId: z.string() }),
  'upstream.changed': z.object({ orgId: z.string(), serverId: z.string() }),
  'upstream.credential-changed': z.object({ orgId: z.string(), serverId: z.string(), caller: z.string() }),
  'upstream.offer-changed': z.object({ orgId: z.string(), serverId: z.string(), caller: z.string() }),
  'mcp.session-ended': z.object({ orgId: z.string(), sessionId: z.string() }),
  'mcp.roots-changed': z.object({ orgId: z.string(), sessionId: z.string() }),
  'mcp.subscribed': z.object({ orgId: z.string(), sessionId: z.string() }),
  'mcp.answered': z.object({ orgId: z.string(), questionId: z.string() }),
  'mcp.held-answered': z.object({ callId: z.string() }),
  'mcp.held-settled': z.object({ letterId: z.string() }),
  'mcp.call-cancelled': z.object({
    orgId: z.string(),
    sessionId: z.string(),
    requestId: z.union([z.string(), z.number(), z.bigint()]),
  }),
} as const;

export type NoticeName = keyof typeof notices;
export type Notice<Name extends NoticeName> = z.infer<(typeof notices)[Name]>;
