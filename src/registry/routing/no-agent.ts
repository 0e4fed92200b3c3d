import { RialtoError } from '../../kernel/errors.js';

const maxReasons = 100;

/** Nobody can do the work: says of each agent why not (RE-73). */
export function noAgent(excluded: readonly { agent: string; reason: string | null }[], hint: string): RialtoError {
  return new RialtoError('no_agent', {
    message: excluded.length === 0 ? 'there is no agent that you may dispatch to' : 'no agent can take this work',
    hint,
    data: { excluded: excluded.slice(0, maxReasons), considered: excluded.length },
  });
}
