import { z } from 'zod';
import { roles } from '../kernel/call-context.js';
import { trustTiers } from '../kernel/trust.js';
import { Moment, Name, Slug } from '../platform/http/params.js';

/** The org of the operator of the deployment. */
export const defaultOrg = 'default';
const reservedOrgs = new Set(['rialto', 'system', 'agents', 'tasks']);
const role = z.enum(roles);
const groups = z.array(Name).max(50).default([]);

export const CreateOrg = z.strictObject({
  slug: Slug.refine((slug) => !reservedOrgs.has(slug), { message: 'is reserved' }),
  name: Name.optional(),
});
export type CreateOrg = z.output<typeof CreateOrg>;

export const ChangeOrg = z
  .strictObject({
    name: Name.optional(),
    defaultAgent: z.string().max(200).nullable().optional(),
    toolTimeoutMs: z.number().int().min(100).max(3_600_000).nullable().optional(),
    toolNames: z.enum(['portable', 'canonical', 'both']).nullable().optional(),
    /** Only admins of the default org set it. */
    trustTier: z.literal(trustTiers).optional(),
  })
  .refine((change) => Object.keys(change).length > 0, { message: 'contains no member to change' });
export type ChangeOrg = z.output<typeof ChangeOrg>;

export const SaveMember = z.strictObject({
  sub: Name,
  role: role.default('member'),
  groups,
  active: z.boolean().default(true),
});
export type SaveMember = z.output<typeof SaveMember>;

/** An API key for a program. With `agent`, its callers act as that registered agent. */
export const CreateKey = z.strictObject({
  name: Name,
  role: role.default('member'),
  groups,
  agent: z.string().max(63).optional(),
  expiresAt: Moment.optional(),
});
export type CreateKey = z.output<typeof CreateKey>;

/** `graceSeconds`: how long tokens under the previous secret are still accepted. */
export const RotateSecret = z.strictObject({ graceSeconds: z.number().int().min(0).max(604_800).default(3_600) });
export type RotateSecret = z.output<typeof RotateSecret>;

export const RevokeToken = z.strictObject({
  jti: z.string().min(1).max(256),
  expiresAt: Moment.optional(),
});
export type RevokeToken = z.output<typeof RevokeToken>;

/** Host names in lower case with at least two labels, so that no domain equals a slug. */
export const Domain = z
  .string()
  .max(253)
  .toLowerCase()
  .regex(/^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, {
    message: 'must be a domain such as acme.example',
  });

export const OrgDomains = z.object({
  domains: z
    .array(Domain)
    .max(20)
    .refine((domains) => new Set(domains).size === domains.length, { message: 'contains the same domain twice' }),
});
export type OrgDomains = z.output<typeof OrgDomains>;

export const OrgView = z.object({
  id: z.string(),
  slug: z.string(),
  name: z.string(),
  defaultAgent: z.string().nullable(),
  toolTimeoutMs: z.number().nullable(),
  toolNames: z.string().nullable(),
  trustTier: z.number(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type OrgView = z.output<typeof OrgView>;

export const MemberView = z.object({
  sub: z.string(),
  role,
  groups: z.array(z.string()),
  active: z.boolean(),
  createdAt: z.string(),
});
export type MemberView = z.output<typeof MemberView>;

export const KeyView = z.object({
  id: z.string(),
  name: z.string(),
  role,
  groups: z.array(z.string()),
  agent: z.string().nullable(),
  hint: z.string(),
  expiresAt: z.string().nullable(),
  revokedAt: z.string().nullable(),
  createdAt: z.string(),
});
export type KeyView = z.output<typeof KeyView>;

/** The only response that contains the key. */
export const NewKeyView = KeyView.extend({ key: z.string() });
export type NewKeyView = z.output<typeof NewKeyView>;

export const NewSecretView = z.object({ secret: z.string(), graceSeconds: z.number() });
