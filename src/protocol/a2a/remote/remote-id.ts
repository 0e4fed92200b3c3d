import { limits } from '../request/limits.js';

/** The reason why ids of a remote agent are refused. */
export const unsoundId = 'an id is too long or has control characters or lone surrogates';

/**
 * True for ids of tasks and contexts that can be stored and sent back unchanged. Other ids are refused and not changed,
 * because the remote agent would not recognise a changed id.
 */
export function areSoundIds(...ids: readonly (string | undefined)[]): boolean {
  return ids.every((id) => id === undefined || (id.length <= limits.id && id.isWellFormed() && !/\p{Cc}/u.test(id)));
}
