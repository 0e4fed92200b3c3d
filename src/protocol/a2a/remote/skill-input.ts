import type { Json, JsonObject } from '../../../kernel/json.js';
import { takesMediaType } from '../media-types.js';

interface SkillInput {
  readonly inputSchema?: Json;
  readonly inputModes?: readonly string[];
}

/**
 * True when plain text can be sent to a skill: its card has no schema for its arguments, and its input modes (or those
 * of the card, when the skill has none) accept text or are absent. Agents before 0.2 write `text` for `text/plain`.
 */
export function takesText({ inputSchema, inputModes = [] }: SkillInput, cardModes: readonly string[] = []): boolean {
  if (inputSchema !== undefined) return false;
  const modes = inputModes.length > 0 ? inputModes : cardModes;
  return modes.length === 0 || modes.includes('text') || takesMediaType(modes, 'text/plain');
}

/**
 * Returns the text that is the whole input of a skill that takes text: `message`, when it is the only argument.
 * Undefined for all other arguments.
 */
export function messageAlone(args: JsonObject): string | undefined {
  const { message } = args;
  return typeof message === 'string' && message !== '' && Object.keys(args).length === 1 ? message : undefined;
}
