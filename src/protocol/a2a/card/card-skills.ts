import type { Violation } from '../../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import { member, stringMember, stringsMember } from '../members.js';

/** One skill of a foreign card, defaults filled in. */
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
 * The skills of a card. Each has an id, unique in its card, for it names a tool (RE-05); the rest has defaults. The list may be
 * empty; it may be absent only on a v1.0 card, because ProtoJSON leaves out empty lists.
 */
export function readSkills(card: JsonObject): { skills: CardSkill[]; violations: Violation[] } {
  const list = member(card, 'skills') ?? (member(card, 'supportedInterfaces') === undefined ? undefined : []);
  if (!Array.isArray(list)) return refuse('/skills', 'a card has a list of skills');
  if (list.length > maxSkills) return refuse('/skills', `more than ${maxSkills} skills`);
  const violations: Violation[] = [];
  const seen = new Set<string>();
  const skills = list.flatMap((item, index) => {
    const wrong = isJsonObject(item) ? whatIsWrong(item, seen) : { member: '', description: 'a skill is an object' };
    if (wrong) violations.push({ field: `/skills/${index}${wrong.member}`, description: wrong.description });
    return isJsonObject(item) && !wrong ? [readSkill(item)] : [];
  });
  return { skills, violations };
}

function whatIsWrong(skill: JsonObject, seen: Set<string>): { member: string; description: string } | undefined {
  const id = stringMember(skill, 'id');
  if (!id?.trim()) return { member: '/id', description: 'a skill has a non-empty id' };
  if (id.length > maxIdLength) return { member: '/id', description: `longer than ${maxIdLength} characters` };
  if (seen.has(id)) return { member: '/id', description: 'another skill of the card has the same id' };
  seen.add(id);
  const schema = member(skill, 'inputSchema');
  if (schema === undefined || isJsonObject(schema) || typeof schema === 'boolean') return undefined;
  return { member: '/inputSchema', description: 'an inputSchema is a JSON Schema: an object' };
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

function refuse(field: string, description: string): { skills: CardSkill[]; violations: Violation[] } {
  return { skills: [], violations: [{ field, description }] };
}
