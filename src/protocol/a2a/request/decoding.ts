import type { Violation } from '../../../kernel/errors.js';
import { isJsonObject, storableText } from '../../../kernel/json.js';
import { defined } from './defined.js';
import { Fields } from './fields.js';
import { limits } from './limits.js';
import type { A2aVersion } from '../model.js';
import type { Decoded, Operation } from './operations.js';

/** Reads the params of one operation; problems are recorded in the fields. */
export type ReadOperation = (fields: Fields) => Operation;

/**
 * Decodes params to an operation, or to the list of all their problems. Absent params count as empty (JSON-RPC 2.0
 * section 4.2 allows that); by-position params are not A2A. `tenant` belongs to every request of v1.0.
 */
export function decodeParams(params: unknown, version: A2aVersion, read: ReadOperation): Decoded {
  const object = params === undefined ? {} : params;
  if (!isJsonObject(object)) return invalidParams([{ field: 'params', description: 'must be an object' }]);
  const fields = new Fields(object);
  const operation = read(fields);
  const tenant = version === '1.0' ? fields.text('tenant', { max: limits.id, empty: 'absent' }) : undefined;
  if (fields.violations.length > 0) return invalidParams(fields.violations);
  return defined({ ok: true as const, operation, version, tenant });
}

export function invalidParams(violations: Violation[]): Decoded {
  const [first, ...more] = violations;
  const rest = more.length > 0 ? ` (and ${more.length} more)` : '';
  return { ok: false, code: 'invalid_params', message: `${first?.field} ${first?.description}${rest}`, violations };
}

export function methodNotFound(method: string): Decoded {
  return { ok: false, code: 'method_not_found', message: `there is no method ${storableText(method, 100)}` };
}
