import { z } from 'zod';
import { trustTiers } from '../kernel/trust.js';
import { Name } from '../platform/http/params.js';

export { lifetimeOf } from './cedar/ask-annotation.js';

/** The guard that denies calls of tools with an unapproved definition. */
export const changedToolsWait = 'rialto:changed-tools-wait';

const policyText = z.string().min(1).max(131_072);
const template = z.strictObject({ id: z.string().max(100), inputs: z.record(z.string(), z.unknown()) });

/** A policy to store: its text, or a template with its inputs. */
export const SavePolicy = z
  .strictObject({ name: Name, text: policyText.optional(), template: template.optional() })
  .refine(({ text, template }) => (text === undefined) !== (template === undefined), {
    message: 'give either text or template',
  });
export type SavePolicy = z.output<typeof SavePolicy>;

export const ReplacePolicy = z
  .strictObject({ name: Name.optional(), text: policyText.optional(), template: template.optional() })
  .refine(({ text, template }) => (text === undefined) !== (template === undefined), {
    message: 'give either text or template',
  });
export type ReplacePolicy = z.output<typeof ReplacePolicy>;

const literal = z.string().max(2_048);

/** A question: may this principal do this? Entities are in Cedar syntax, e.g. `User::"bob"`. */
export const TestPolicy = z.strictObject({
  principal: literal,
  action: z.string().max(200),
  resource: literal,
  input: z.record(z.string(), z.unknown()).optional(),
  /** Size in bytes of an encrypted message, and the tier of its sender. Absent: no encrypted message. */
  encrypted: z
    .strictObject({ bytes: z.number().int().min(0), trustTier: z.literal([...trustTiers]).default(1) })
    .optional(),
  /** Groups of the principal. `role` applies instead of the stored role. */
  groups: z.array(z.string().max(200)).max(50).optional(),
  role: z.enum(['viewer', 'member', 'admin']).optional(),
  /** A policy that is tested together with the stored ones, but not stored. */
  text: policyText.optional(),
});
export type TestPolicy = z.output<typeof TestPolicy>;

export const PolicyView = z.object({
  id: z.string(),
  name: z.string(),
  version: z.number(),
  text: z.string(),
  source: z.string(),
  template: z.object({ id: z.string(), inputs: z.record(z.string(), z.unknown()) }).nullable(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type PolicyView = z.output<typeof PolicyView>;

export const PolicyVersionView = z.object({
  version: z.number(),
  name: z.string(),
  text: z.string(),
  createdBy: z.string(),
  createdAt: z.string(),
});
export type PolicyVersionView = z.output<typeof PolicyVersionView>;

export const TestResult = z.object({
  /** `ask`: only an approval is missing, by a person in all groups of `approvers`. */
  decision: z.enum(['allow', 'deny', 'ask']),
  approvers: z.array(z.string()).optional(),
  policies: z.array(z.string()),
  reason: z.string(),
  version: z.string().optional(),
});
export type TestResult = z.output<typeof TestResult>;

export const TemplateView = z.object({
  id: z.string(),
  title: z.string(),
  inputs: z.record(
    z.string(),
    z.object({ type: z.string(), description: z.string(), choices: z.array(z.string()).optional() }),
  ),
});
