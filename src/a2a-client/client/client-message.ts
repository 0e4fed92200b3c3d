import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import type { JsonObject } from '../../kernel/json.js';
import type { Message, Part } from '../../protocol/a2a/model.js';
import { partsOf } from '../../protocol/a2a/remote/remote-parts.js';
import type { SendParams } from '../transports/sdk.transport.js';
import type { MessageInput, OlderPart, SendOptions } from './client-options.js';

/** Builds the parameters of a send. Throws `invalid_params` for another role, and for a message without content. */
export function paramsOf(
  input: MessageInput,
  { contextId, taskId, async: isAsync, skillId, data, metadata }: SendOptions,
): SendParams {
  const given = typeof input === 'string' ? { parts: input === '' ? [] : [{ text: input }] } : input;
  const { role = 'user' } = given;
  if (role !== 'user' && role !== 'ROLE_USER')
    throw new RialtoError('invalid_params', {
      message: `message.role is ${JSON.stringify(role)}; a client sends as "user"`,
    });
  const parts = [...given.parts.map(currentPart), ...(data === undefined ? [] : [{ data }])];
  if (parts.length === 0)
    throw new RialtoError('invalid_params', { message: 'a message needs a text, a part or data' });
  const facts: JsonObject = { ...given.metadata, ...metadata, ...(skillId !== undefined && { skillId }) };
  const message: Message = {
    messageId: newId(),
    ...given,
    role: 'ROLE_USER',
    parts,
    ...(contextId !== undefined && { contextId }),
    ...(taskId !== undefined && { taskId }),
    ...(Object.keys(facts).length > 0 && { metadata: facts }),
  };
  return { message, configuration: { returnImmediately: isAsync === true } };
}

/** Converts a part to the v1.0 shape; rewrites a part with a `type` or `kind`, as older agents and v0.3 send it. */
function currentPart(part: Part | OlderPart): Part {
  return 'type' in part || 'kind' in part ? partsOf([part as object as JsonObject])[0]! : part;
}
