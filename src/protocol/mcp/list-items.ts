import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { mendSchema } from './schema/mend-schema.js';
import { schemaFault } from './schema/schema-fault.js';

/** The lists of an MCP server, by the member that has the items. */
export type ItemList = 'tools' | 'resources' | 'resourceTemplates' | 'prompts';

/** An item in a form that clients can read, with the corrected problems. */
export interface MendedItem {
  /** Absent when no usable item is left. */
  readonly item?: JsonObject;
  /** Each problem names a member: "annotations.readOnlyHint is not a boolean". */
  readonly problems: readonly string[];
}

/** Records the problem of a member. */
type Note = (problem: string) => void;
/** Corrects a value: returns the same value when it is valid, undefined when it must be removed. */
type Rule = (value: Json, path: string, note: Note) => Json | undefined;

/**
 * Corrects an item of a list. Official clients refuse a whole page when one item breaks the schema of its kind (MCP
 * schema 2025-11-25: Tool, Resource, ResourceTemplate, Prompt). Optional members of a wrong type are removed; `item` is
 * absent when a required member cannot be corrected. Pure; an item without problems is returned unchanged.
 */
export function mendItem(list: ItemList, item: JsonObject): MendedItem {
  const problems: string[] = [];
  const mended = kinds[list](item, '', (problem) => problems.push(problem));
  return { ...(isJsonObject(mended) && { item: mended }), problems };
}

function ofType(type: 'string' | 'boolean' | 'number', noun: string): Rule {
  return (value, path, note) => {
    if (typeof value === type) return value;
    note(`${path} is not ${noun}`);
    return undefined;
  };
}

const text = ofType('string', 'a string');
const flag = ofType('boolean', 'a boolean');
const number = ofType('number', 'a number');

function oneOf(...words: string[]): Rule {
  return (value, path, note) => {
    if (words.includes(value as string)) return value;
    note(`${path} is not one of ${words.join(', ')}`);
    return undefined;
  };
}

function matching(isRight: (value: Json) => boolean, noun: string): Rule {
  return (value, path, note) => {
    if (isRight(value)) return value;
    note(`${path} is not ${noun}`);
    return undefined;
  };
}

function isListOf(rule: Rule): Rule {
  return (value, path, note) => {
    if (!Array.isArray(value)) {
      note(`${path} is not a list`);
      return undefined;
    }
    const items = value.map((item, index) => rule(item, `${path}[${index}]`, note));
    return items.every((item, index) => item === value[index]) ? value : items.filter((item) => item !== undefined);
  };
}

/**
 * Rule for an object.
 *
 * @param required members without which the object is removed.
 */
function objectOf(rules: Readonly<Record<string, Rule>>, required: readonly string[] = []): Rule {
  return (value, path, note) => {
    if (!isJsonObject(value)) {
      note(`${path} is not an object`);
      return undefined;
    }
    const changed: Record<string, Json | undefined> = {};
    for (const [name, rule] of Object.entries(rules)) {
      const given = Object.hasOwn(value, name) ? value[name] : undefined;
      if (given === undefined) continue;
      const mended = rule(given, path === '' ? name : `${path}.${name}`, note);
      if (mended !== given) changed[name] = mended;
    }
    const missing = required.find((name) => (Object.hasOwn(changed, name) ? changed[name] : value[name]) === undefined);
    if (missing !== undefined) {
      if (!Object.hasOwn(changed, missing)) note(`${path === '' ? missing : `${path}.${missing}`} is missing`);
      return undefined;
    }
    if (Object.keys(changed).length === 0) return value;
    const entries = Object.entries({ ...value, ...changed }).filter(([, member]) => member !== undefined);
    return Object.fromEntries(entries) as JsonObject;
  };
}

const meta = objectOf({});
const icons = isListOf(
  objectOf({ src: text, mimeType: text, sizes: isListOf(text), theme: oneOf('light', 'dark') }, ['src']),
);
const shown = { title: text, description: text, icons, _meta: meta };
const moment =
  /^(\d{4}-\d\d-\d\d)T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** True for an ISO 8601 time with a time zone, checked as clients check it. */
function isMoment(value: Json): boolean {
  const day = typeof value === 'string' ? moment.exec(value)?.[1] : undefined;
  const at = day === undefined ? NaN : Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day!);
}

const annotations = objectOf({
  audience: isListOf(oneOf('user', 'assistant')),
  priority: matching((value) => typeof value === 'number' && value >= 0 && value <= 1, 'a number from 0 to 1'),
  lastModified: matching(isMoment, 'an ISO 8601 time with a time zone'),
});

const inputSchema: Rule = (value, path, note) => {
  if (!isJsonObject(value)) {
    note(`${path} is not an object`);
    return undefined;
  }
  const { schema, problems, refusal } = mendSchema(value);
  for (const problem of [...problems, ...(refusal === undefined ? [] : [refusal])]) note(`${path}: ${problem}`);
  return schema;
};

/**
 * Clients accept only objects as structured results. A tool stays usable without its output schema, so a wrong one is
 * removed.
 */
const outputSchema: Rule = (value, path, note) => {
  if (!isJsonObject(value) || value.type !== 'object') {
    note(`${path} is not a schema of an object`);
    return undefined;
  }
  return inputSchema(value, path, note);
};

const tool = objectOf(
  {
    ...shown,
    name: text,
    inputSchema,
    outputSchema,
    annotations: objectOf({
      title: text,
      readOnlyHint: flag,
      destructiveHint: flag,
      idempotentHint: flag,
      openWorldHint: flag,
    }),
    execution: objectOf({ taskSupport: oneOf('required', 'optional', 'forbidden') }),
  },
  ['name', 'inputSchema'],
);
const resource = { ...shown, name: text, mimeType: text, annotations };

/**
 * Adds a missing name, taken from the address of the item. Servers of earlier revisions, and careless ones, omit names.
 */
function named(rule: Rule, key: string): Rule {
  return (value, path, note) => {
    const item = rule(value, path, note);
    if (!isJsonObject(item) || item.name !== undefined) return item;
    if (isJsonObject(value) && value.name === undefined) note('name is missing');
    return { ...item, name: item[key]! };
  };
}

const kinds: Readonly<Record<ItemList, Rule>> = {
  tools: tool,
  resources: named(objectOf({ ...resource, uri: text, size: number }, ['uri']), 'uri'),
  resourceTemplates: named(objectOf({ ...resource, uriTemplate: text }, ['uriTemplate']), 'uriTemplate'),
  prompts: objectOf(
    {
      ...shown,
      name: text,
      arguments: isListOf(objectOf({ name: text, title: text, description: text, required: flag }, ['name'])),
    },
    ['name'],
  ),
};

/**
 * Says why clients cannot compile the output schema of a tool, for which they refuse the whole list; undefined when
 * they can.
 */
export function outputFault({ outputSchema: schema }: JsonObject): string | undefined {
  return isJsonObject(schema) ? schemaFault(schema, isRegExp) : undefined;
}

/**
 * True for a regular expression of ECMA-262 with Unicode. V8 takes up to a millisecond for each class of Unicode
 * characters, so it compiles each once.
 */
function isRegExp(pattern: string): boolean {
  const plain = pattern.replace(/\\(?:[pP]\{[\w=]+\}|[^])/g, (escape) => {
    return escape.length > 2 && isUnicodeClass(escape) ? '\\d' : escape;
  });
  return compiles(plain);
}

const unicodeClasses = new Set<string>();

function isUnicodeClass(escape: string): boolean {
  const isKnown = unicodeClasses.has(escape) || compiles(escape);
  // Only valid classes are kept, and there are only some thousands of them.
  if (isKnown) unicodeClasses.add(escape);
  return isKnown;
}

function compiles(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u') instanceof RegExp;
  } catch {
    return false;
  }
}
