import type { Json, JsonObject } from '../../../kernel/json.js';
import { takesMediaType } from '../media-types.js';

interface SkillInput {
  readonly inputSchema?: Json;
  readonly inputModes?: readonly string[];
}

/**
 * True when a skill may be sent plain text: its card gives no schema for its arguments, and its input modes (those of the card where
 * the skill has none) take text or are not said. `text` alone is how agents before 0.2 write `text/plain`.
 */
export function takesText({ inputSchema, inputModes = [] }: SkillInput, cardModes: readonly string[] = []): boolean {
  if (inputSchema !== undefined) return false;
  const modes = inputModes.length > 0 ? inputModes : cardModes;
  return modes.length === 0 || modes.includes('text') || takesMediaType(modes, 'text/plain');
}

/** The text that is the whole input of a skill that takes text: `message`, given alone. Undefined for all other arguments. */
export function messageAlone(args: JsonObject): string | undefined {
  const { message } = args;
  return typeof message === 'string' && message !== '' && Object.keys(args).length === 1 ? message : undefined;
}
