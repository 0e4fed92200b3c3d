import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { mendSchema } from './mend-schema.js';
import { schemaFault } from './schema-fault.js';

/** The lists that MCP servers have, by the member that holds the items of each. */
export type ItemList = 'tools' | 'resources' | 'resourceTemplates' | 'prompts';

/** An item as clients can read it, and what had to change for that. */
export interface MendedItem {
  /** Absent: nothing useful is left of it. */
  readonly item?: JsonObject;
  /** Each names a member: "annotations.readOnlyHint is no boolean". */
  readonly problems: readonly string[];
}

/** Says what is wrong with a member. */
type Note = (problem: string) => void;
/** The value as clients take it: the same one where nothing is wrong with it, undefined where it has to go. */
type Rule = (value: Json, path: string, note: Note) => Json | undefined;

/**
 * Official clients refuse a whole page for one item that breaks the schema of its kind (MCP schema 2025-11-25: Tool, Resource,
 * ResourceTemplate, Prompt). Optional members of a wrong type are taken out; an item is absent from the answer where a required member
 * cannot be made good. Pure; an item without faults is returned as it is.
 */
export function mendItem(list: ItemList, item: JsonObject): MendedItem {
  const problems: string[] = [];
  const mended = kinds[list](item, '', (problem) => problems.push(problem));
  return { ...(isJsonObject(mended) && { item: mended }), problems };
}

function ofType(type: 'string' | 'boolean' | 'number', noun: string): Rule {
  return (value, path, note) => {
    if (typeof value === type) return value;
    note(`${path} is no ${noun}`);
    return undefined;
  };
}

const text = ofType('string', 'text');
const flag = ofType('boolean', 'boolean');
const number = ofType('number', 'number');

function oneOf(...words: string[]): Rule {
  return (value, path, note) => {
    if (words.includes(value as string)) return value;
    note(`${path} is none of ${words.join(', ')}`);
    return undefined;
  };
}

function matching(isRight: (value: Json) => boolean, noun: string): Rule {
  return (value, path, note) => {
    if (isRight(value)) return value;
    note(`${path} is no ${noun}`);
    return undefined;
  };
}

function listOf(rule: Rule): Rule {
  return (value, path, note) => {
    if (!Array.isArray(value)) {
      note(`${path} is no list`);
      return undefined;
    }
    const items = value.map((item, index) => rule(item, `${path}[${index}]`, note));
    return items.every((item, index) => item === value[index]) ? value : items.filter((item) => item !== undefined);
  };
}

/** @param required without one of these the object is of no use. */
function objectOf(rules: Readonly<Record<string, Rule>>, required: readonly string[] = []): Rule {
  return (value, path, note) => {
    if (!isJsonObject(value)) {
      note(`${path} is no object`);
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
const icons = listOf(
  objectOf({ src: text, mimeType: text, sizes: listOf(text), theme: oneOf('light', 'dark') }, ['src']),
);
const shown = { title: text, description: text, icons, _meta: meta };
const moment =
  /^(\d{4}-\d\d-\d\d)T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** ISO 8601 with a zone, as clients check it. */
function isMoment(value: Json): boolean {
  const day = typeof value === 'string' ? moment.exec(value)?.[1] : undefined;
  const at = day === undefined ? NaN : Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day!);
}

const annotations = objectOf({
  audience: listOf(oneOf('user', 'assistant')),
  priority: matching((value) => typeof value === 'number' && value >= 0 && value <= 1, 'number from 0 to 1'),
  lastModified: matching(isMoment, 'ISO 8601 time with a zone'),
});

const inputSchema: Rule = (value, path, note) => {
  if (!isJsonObject(value)) {
    note(`${path} is no object`);
    return undefined;
  }
  const { schema, problems, refusal } = mendSchema(value);
  for (const problem of [...problems, ...(refusal === undefined ? [] : [refusal])]) note(`${path}: ${problem}`);
  return schema;
};

/** Structured results are an object for all clients; a tool is as useful without a schema of them. */
const outputSchema: Rule = (value, path, note) => {
  if (!isJsonObject(value) || value.type !== 'object') {
    note(`${path} is no schema of an object`);
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

/** What a list calls its items; servers of earlier revisions, and careless ones, leave the name out. */
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
      arguments: listOf(objectOf({ name: text, title: text, description: text, required: flag }, ['name'])),
    },
    ['name'],
  ),
};

/** Why clients cannot compile the output schema of a tool: they refuse the whole list for it. Undefined without a fault. */
export function outputFault({ outputSchema: schema }: JsonObject): string | undefined {
  return isJsonObject(schema) ? schemaFault(schema, isRegExp) : undefined;
}

function isRegExp(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u') instanceof RegExp;
  } catch {
    return false;
  }
}
