import { z } from 'zod';
import type { JsonObject } from '../kernel/json.js';
import { limits } from '../protocol/a2a/request/limits.js';
import { CandidateView } from '../registry/dispatch.types.js';

// Parsed JSON is always JSON; a recursive schema would only add one more schema to the API description.
const jsonObject = z.record(z.string(), z.unknown()) as unknown as z.ZodType<JsonObject>;
/** Values for the `{{path}}` templates in the texts of a step. */
const context = jsonObject.optional();
const word = z.string().trim().min(1).max(200);
/**
 * A conversation in a system at `url`, which knows it as `id`; `token` is the bearer token for it. It gets the answer
 * of a call that continues after its caller got none (AN-75).
 */
const Thread = z.strictObject({
  url: z.string().min(1).max(limits.url),
  id: z.string().min(1).max(limits.id),
  token: z.string().min(1).max(limits.token).optional(),
});
export type Thread = z.output<typeof Thread>;

/** Receivers, beside the caller, of the progress of a call that its agent does not end at once. */
const receivers = {
  /** Gets the changes of the task in the form of run events (RI-40). */
  webhook_url: z.string().min(1).max(limits.url).optional(),
  thread: Thread.optional(),
};

/** A step that names its agent (RE-47): `agentCardId` is an id or a slug. */
export const InvokeStep = z.strictObject({
  agentCardId: word,
  skillId: z.string().min(1).max(256),
  args: jsonObject.default({}),
  context,
  ...receivers,
});
export type InvokeStep = z.output<typeof InvokeStep>;

/**
 * A step that describes the work, and lets Rialto choose the agent (RE-48). Without `args` the agent gets workType,
 * description and requiredSkills.
 */
export const DispatchStep = z.strictObject({
  workType: word,
  description: z.string().max(8_000).default(''),
  requiredSkills: z.array(word).max(50).default([]),
  args: jsonObject.optional(),
  costLimit: z.number().min(0).max(1e12).optional(),
  seed: z.number().int().min(0).max(4_294_967_295).optional(),
  context,
  ...receivers,
});
export type DispatchStep = z.output<typeof DispatchStep>;

/** Label that a workflow gives to a node: accepted, and not used here. */
const label = z.string().max(200).optional();

/**
 * Builds the schema of a step's body: the step itself, or a workflow node with the step in `config` (`{ id, type,
 * nodeId, config }`, RE-47, RE-48).
 */
function stepBody<Step>(Step: z.ZodType<Step>) {
  const Node = z
    .strictObject({ id: label, type: label, nodeId: label, config: Step, context, ...receivers })
    .transform(({ id: _1, type: _2, nodeId: _3, config, ...around }): Step => ({ ...config, ...around }));
  // The union describes the body in the API. Issues come only from the form that the caller sent.
  return z
    .unknown()
    .meta(z.toJSONSchema(z.union([Step, Node]), { io: 'input', target: 'openapi-3.0' }))
    .transform((body, issues): Step => {
      const isNode = typeof body === 'object' && body !== null && Object.hasOwn(body, 'config');
      const read = (isNode ? Node : Step).safeParse(body);
      if (read.success) return read.data;
      for (const { message, path } of read.error.issues) issues.addIssue({ code: 'custom', message, path });
      return z.NEVER;
    });
}
export const InvokeBody = stepBody(InvokeStep);
export const DispatchBody = stepBody(DispatchStep);

/** The answer of an agent, and which agent gave it. `output` equals the result of the same tool call. */
export const DispatchAnswer = z.object({
  dispatchId: z.string(),
  agent: z.object({ id: z.string(), slug: z.string(), name: z.string() }),
  skillId: z.string(),
  taskId: z.string().nullable(),
  output: z.unknown(),
  /**
   * Set for a step without an agent: `seed` repeats the choice among the same agents, `score` is the score of the
   * chosen one.
   */
  chosen: z.object({ seed: z.number(), score: z.number() }).nullable(),
});
export type DispatchAnswer = z.output<typeof DispatchAnswer>;

/** The choice that a dispatch would make now; `chosen` is a slug. */
export const DispatchExplanation = z.object({
  seed: z.number(),
  chosen: z.string().nullable(),
  candidates: z.array(CandidateView),
});
export type DispatchExplanation = z.output<typeof DispatchExplanation>;
