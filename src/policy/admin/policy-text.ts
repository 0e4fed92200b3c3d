import { RialtoError, type Violation } from '../../kernel/errors.js';
import { inTurns } from '../../platform/jobs/in-turns.js';
import { reservedPrefix } from '../cedar/builtin.js';
import { renderTemplate } from '../cedar/templates.js';
import { validatingPolicyText } from '../cedar/validate.js';
import type { SavePolicy } from '../policy.types.js';

/** Returns the text of a filled template. Throws `policy_invalid`. */
export function rendered(template: NonNullable<SavePolicy['template']>): string {
  const text = renderTemplate(template.id, template.inputs);
  if (!text.ok) throw invalidPolicy([...text.violations]);
  return text.value;
}

/** Returns the text of a policy. Throws `policy_invalid` with the position of each problem. */
export async function validText(name: string, text: string): Promise<string> {
  const violations = name.startsWith(reservedPrefix)
    ? [{ field: 'name', description: `names must not begin with ${reservedPrefix}` }]
    : await inTurns(validatingPolicyText(name, text));
  if (violations.length > 0) throw invalidPolicy(violations);
  return text;
}

function invalidPolicy(violations: Violation[]): RialtoError {
  return new RialtoError('policy_invalid', {
    message: violations
      .map(({ field, description }) => `${field}: ${description}`)
      .join('; ')
      .slice(0, 1_000),
    violations,
  });
}
