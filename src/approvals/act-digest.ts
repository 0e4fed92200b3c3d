import { hash } from 'node:crypto';
import { callerOf } from '../kernel/call-context.js';
import { canonicalJson } from '../kernel/canonical-json.js';
import type { JsonObject } from '../kernel/json.js';
import type { Act } from '../kernel/verb-bus.js';

/**
 * Returns the digest that binds an approval to one exact act: verb, resource, arguments, caller, and the version of the
 * policies that asked. Equal acts have equal digests; with any other argument, caller or policy an approval does not
 * fit.
 */
export function digestOf(act: Act, policyVersion: string | undefined): string {
  const { verb, action, resource, ctx, args = {}, content } = act;
  const { type, id } = resource;
  const bound = { verb, action, resource: { type, id }, args, content, caller: callerOf(ctx.principal), policyVersion };
  return hash('sha256', canonicalJson(bound), 'hex');
}

/** Returns what the approver has to see: everything that the act sends. */
export function contentOf({ args = {}, content }: Pick<Act, 'args' | 'content'>): JsonObject {
  return content ?? args;
}
