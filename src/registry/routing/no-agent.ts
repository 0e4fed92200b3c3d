import { RialtoError } from '../../kernel/errors.js';

const maxReasons = 100;

/** Error for work that no agent can do, with the reason for each agent (RE-73). */
export function noAgent(excluded: readonly { agent: string; reason: string | null }[], hint: string): RialtoError {
  return new RialtoError('no_agent', {
    message: excluded.length === 0 ? 'you may dispatch to no agent of this org' : 'no agent can take this work',
    hint,
    data: { excluded: excluded.slice(0, maxReasons), considered: excluded.length },
  });
}
