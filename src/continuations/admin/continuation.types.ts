import { z } from 'zod';
import { threadAnswerStatuses } from '../threads/thread-answer.entity.js';
import { continuationStatuses } from '../storage/continuation.entity.js';

export const ContinuationQuery = z.strictObject({
  status: z.enum(continuationStatuses).optional(),
  agentId: z.uuid().optional(),
  taskId: z.uuid().optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional(),
});
export type ContinuationQuery = z.output<typeof ContinuationQuery>;

/** A continuation in the admin API: a remote task that goes on after its call. Times are ISO 8601. */
export const ContinuationView = z.object({
  id: z.string(),
  taskId: z.string(),
  agentId: z.string(),
  agent: z.string(),
  agentUrl: z.string(),
  remoteTaskId: z.string(),
  status: z.enum(continuationStatuses),
  attempts: z.number().int(),
  maxAttempts: z.number().int(),
  polls: z.number().int(),
  /** When the time that the remote task may take is over. */
  deadlineAt: z.string(),
  /** When a worker resumes it; null while a process follows the remote task, and after the end. */
  nextAt: z.string().nullable(),
  lastError: z.string().nullable(),
  /** State of the answer to a conversation thread; null without a thread. */
  thread: z
    .object({
      status: z.enum(threadAnswerStatuses),
      attempts: z.number().int(),
      lastError: z.string().nullable(),
    })
    .nullable(),
  createdAt: z.string(),
  endedAt: z.string().nullable(),
});
export type ContinuationView = z.output<typeof ContinuationView>;
