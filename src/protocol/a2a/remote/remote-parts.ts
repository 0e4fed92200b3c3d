import type { JsonObject } from '../../../kernel/json.js';
import type { BridgeReply, RemoteParts } from './bridge-reply.js';
import { dialects } from '../dialects.js';
import type { Artifact, Part } from '../model.js';
import { wrapUnknownPart } from '../unknown-part.js';

/**
 * Converts the parts of a remote agent, v1.0 or older, to parts of the model. A part of an unknown kind becomes data.
 *
 * @param name `content` for parts in the JSON of the v0.3 proto, which nests data one level deeper.
 */
export function partsOf(raw: readonly JsonObject[], name: 'parts' | 'content' = 'parts'): Part[] {
  return raw.map((part) => {
    const message = { messageId: 'remote', role: 'user', [name]: [part] };
    const decoded = dialects['0.3'].decode('message/send', { message });
    const [read] = decoded.ok && decoded.operation.name === 'SendMessage' ? decoded.operation.params.message.parts : [];
    return read ?? wrapUnknownPart(part);
  });
}

/** Returns the artifacts of a reply; an artifact without an id gets its position as the id. */
export function artifactsOf({ artifacts }: Extract<BridgeReply, { kind: 'task' }>): Artifact[] {
  return artifacts.map(({ raw, parts }: RemoteParts, index) => {
    const { artifactId, name, description } = raw;
    return {
      artifactId: typeof artifactId === 'string' && artifactId !== '' ? artifactId : `artifact-${index + 1}`,
      ...(typeof name === 'string' && { name }),
      ...(typeof description === 'string' && { description }),
      parts: partsOf(parts),
    };
  });
}
