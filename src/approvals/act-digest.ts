import { hash } from 'node:crypto';
import { callerOf } from '../kernel/call-context.js';
import { canonicalJson } from '../kernel/canonical-json.js';
import type { JsonObject } from '../kernel/json.js';
import type { Act } from '../kernel/verb-bus.js';
import type { NeededApproval } from '../kernel/verbs.js';

/**
 * Returns the digest that binds an approval to one exact act: verb, resource, target with the addresses behind it,
 * arguments, receivers, caller, the version of the policies, and what they need now. Equal acts have equal digests;
 * with any other argument, caller or policy an approval does not fit, and neither when other policies ask for the act
 * at another door.
 */
export function digestOf(
  act: Act,
  policyVersion: string | undefined,
  needs: NeededApproval,
  behind?: JsonObject,
): string {
  const { verb, action, resource, ctx, args = {}, content, receivers, target } = act;
  const { type, id } = resource;
  const asked = { target, receivers, behind, caller: callerOf(ctx.principal), policyVersion, needs };
  return hash('sha256', canonicalJson({ verb, action, resource: { type, id }, args, content, ...asked }), 'hex');
}

/** Returns what the approver has to see: everything that the act sends. */
export function contentOf({ args = {}, content }: Pick<Act, 'args' | 'content'>): JsonObject {
  return content ?? args;
}
