import { z } from 'zod';
import type { JsonObject } from '../kernel/json.js';
import { limits } from '../protocol/a2a/request/limits.js';
import { CandidateView } from '../registry/dispatch.types.js';

// What was parsed from JSON is JSON; a schema that says so recursively would be one more in the API's description.
const jsonObject = z.record(z.string(), z.unknown()) as unknown as z.ZodType<JsonObject>;
/** What the `{{path}}` templates in the texts of a step are filled from. */
const context = jsonObject.optional();
const word = z.string().trim().min(1).max(200);
/**
 * A conversation whose receiver is at `url` and calls it `id`; the token is its bearer. Gets the answer of work that goes on, when its caller
 * did not (AN-75).
 */
const Thread = z.strictObject({
  url: z.string().min(1).max(limits.url),
  id: z.string().min(1).max(limits.id),
  token: z.string().min(1).max(limits.token).optional(),
});
export type Thread = z.output<typeof Thread>;

/** Who is told, beside the caller, what becomes of a call that its agent does not end at once. */
const tells = {
  /** Gets the changes of the task as runs tell them (RI-40, C16). */
  webhook_url: z.string().min(1).max(limits.url).optional(),
  thread: Thread.optional(),
};

/** A step that names its agent (RE-47): `agentCardId` is an id or a slug. */
export const InvokeStep = z.strictObject({
  agentCardId: word,
  skillId: z.string().min(1).max(256),
  args: jsonObject.default({}),
  context,
  ...tells,
});
export type InvokeStep = z.output<typeof InvokeStep>;

/**
 * A step that says what is to be done, and leaves to Rialto by whom (RE-48). Without `args` the agent is sent workType, description and
 * requiredSkills.
 */
export const DispatchStep = z.strictObject({
  workType: word,
  description: z.string().max(8_000).default(''),
  requiredSkills: z.array(word).max(50).default([]),
  args: jsonObject.optional(),
  costLimit: z.number().min(0).max(1e12).optional(),
  seed: z.number().int().min(0).max(4_294_967_295).optional(),
  context,
  ...tells,
});
export type DispatchStep = z.output<typeof DispatchStep>;

/** What a workflow calls a node: stated for its own use, and not read here. */
const label = z.string().max(200).optional();

/** The body of a step: the step itself, or a node of a workflow whose `config` is the step (`{ id, type, nodeId, config }`, RE-47, RE-48). */
function bodyOf<Step>(Step: z.ZodType<Step>) {
  const Node = z
    .strictObject({ id: label, type: label, nodeId: label, config: Step, context, ...tells })
    .transform(({ id: _1, type: _2, nodeId: _3, config, ...around }): Step => ({ ...config, ...around }));
  // The union describes the body in the API. Issues come from the one form that was sent.
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
export const InvokeBody = bodyOf(InvokeStep);
export const DispatchBody = bodyOf(DispatchStep);

/** The answer of an agent, and who gave it. `output` is what the same call of its tool would have brought. */
export const DispatchAnswer = z.object({
  dispatchId: z.string(),
  agent: z.object({ id: z.string(), slug: z.string(), name: z.string() }),
  skillId: z.string(),
  taskId: z.string().nullable(),
  output: z.unknown(),
  /** Of a step without an agent: `seed` repeats the choice among the same agents, `score` is what the chosen one had. */
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
