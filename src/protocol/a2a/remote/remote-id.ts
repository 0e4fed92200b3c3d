import { limits } from '../request/limits.js';

/** Why the ids of a remote cannot be kept. */
export const unsoundId = 'an id is too long or not plain text';

/**
 * True for ids of tasks and contexts that can be kept and said again as they are. One that cannot is refused rather than changed: under
 * another id the remote would not know its own task.
 */
export function areSoundIds(...ids: readonly (string | undefined)[]): boolean {
  return ids.every((id) => id === undefined || (id.length <= limits.id && id.isWellFormed() && !/\p{Cc}/u.test(id)));
}
