import type { Violation } from '../../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import { member, stringMember, stringsMember } from '../members.js';

/** One skill of a remote agent's card, with defaults filled in. */
export interface CardSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: string[];
  readonly examples?: string[];
  readonly inputModes?: string[];
  readonly outputModes?: string[];
  /** JSON Schema of the arguments, verbatim (RE-11). */
  readonly inputSchema?: Json;
}

const maxSkills = 500;
const maxIdLength = 256;

/**
 * Reads the skills of a card. Each skill needs an id that is unique in the card, because it names a tool (RE-05); all
 * other members have defaults. The list may be empty. It may be absent only in a v1.0 card, because ProtoJSON omits
 * empty lists.
 */
export function readSkills(card: JsonObject): { skills: CardSkill[]; violations: Violation[] } {
  const list = member(card, 'skills') ?? (member(card, 'supportedInterfaces') === undefined ? undefined : []);
  if (!Array.isArray(list)) return refusedSkills('/skills', 'must be a list of skills');
  if (list.length > maxSkills) return refusedSkills('/skills', `has more than ${maxSkills} skills`);
  const violations: Violation[] = [];
  const seen = new Set<string>();
  const skills = list.flatMap((item, index) => {
    const fault = isJsonObject(item) ? faultOf(item, seen) : { member: '', description: 'must be an object' };
    if (fault) violations.push({ field: `/skills/${index}${fault.member}`, description: fault.description });
    return isJsonObject(item) && !fault ? [readSkill(item)] : [];
  });
  return { skills, violations };
}

function faultOf(skill: JsonObject, seen: Set<string>): { member: string; description: string } | undefined {
  const id = stringMember(skill, 'id');
  if (!id?.trim()) return { member: '/id', description: 'must be a non-empty string' };
  if (id.length > maxIdLength) return { member: '/id', description: `is longer than ${maxIdLength} characters` };
  if (seen.has(id)) return { member: '/id', description: 'is also the id of another skill of the card' };
  seen.add(id);
  const schema = member(skill, 'inputSchema');
  if (schema === undefined || isJsonObject(schema) || typeof schema === 'boolean') return undefined;
  return { member: '/inputSchema', description: 'must be a JSON Schema: an object' };
}

function readSkill(skill: JsonObject): CardSkill {
  const id = stringMember(skill, 'id') ?? '';
  const inputSchema = member(skill, 'inputSchema');
  return {
    id,
    name: stringMember(skill, 'name') || id,
    description: stringMember(skill, 'description') ?? '',
    tags: stringsMember(skill, 'tags'),
    ...listed(skill, 'examples'),
    ...listed(skill, 'inputModes'),
    ...listed(skill, 'outputModes'),
    ...(inputSchema !== undefined && { inputSchema }),
  };
}

function listed(skill: JsonObject, name: 'examples' | 'inputModes' | 'outputModes'): { [key: string]: string[] } {
  const items = stringsMember(skill, name);
  return items.length > 0 ? { [name]: items } : {};
}

function refusedSkills(field: string, description: string): { skills: CardSkill[]; violations: Violation[] } {
  return { skills: [], violations: [{ field, description }] };
}
