import { RialtoError } from '../../kernel/errors.js';

/**
 * Returns an error with the name that the caller used: the canonical name would reveal to a denied caller that the
 * tool exists.
 */
export function asCalled(thrown: unknown, name: string): RialtoError {
  const error = RialtoError.from(thrown);
  const { code, message, hint, data } = error;
  if (code !== 'denied' && code !== 'tool_changed' && code !== 'approval_required') return error;
  return new RialtoError(code, { message, hint, data: { ...data, verb: name }, cause: error });
}

export function unknownTool(name: string): RialtoError {
  return new RialtoError('not_found', {
    message: `Unknown tool: ${name.slice(0, 200)}`,
    hint: 'tools/list lists the tools',
  });
}
