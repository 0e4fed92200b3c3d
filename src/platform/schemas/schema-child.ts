import { BoundedMap } from '../../kernel/bounded-map.js';
import type { Violation } from '../../kernel/errors.js';
import type { Json } from '../../kernel/json.js';
import { compileToolSchema, type CompiledSchema, type SchemaLimits } from '../../protocol/mcp/schema/tool-schema.js';

/**
 * A request to the process: arguments and the number of their schema; the schema itself only when it was not sent
 * before.
 */
export interface SchemaQuestion {
  readonly key: number;
  readonly schema?: Json;
  readonly args: unknown;
}

/** The answer. `unknown`: the process no longer stores that schema. */
export type SchemaAnswer = { readonly violations: readonly Violation[] } | { readonly unknown: true };

/** The limits are high, because no other work waits for this event loop. */
const limits: SchemaLimits = { compileMs: 1_000, validateMs: 100 };
/** Compiled, a schema of 64 KiB takes 4 MB. */
const maxCompiled = 25;
const compiledSchemas = new BoundedMap<number, CompiledSchema>(maxCompiled);

/** The violation that is reported for arguments of an invalid schema. */
export function refusal(reason: string): Violation {
  return { field: '', description: `the agent's input schema is refused: ${reason}` };
}

function answerTo({ key, schema, args }: SchemaQuestion): SchemaAnswer {
  const compiled = schema === undefined ? compiledSchemas.get(key) : compileToolSchema(schema, undefined, limits);
  if (!compiled) return { unknown: true };
  compiledSchemas.set(key, compiled);
  return { violations: compiled.ok ? compiled.validate(args) : [refusal(compiled.reason)] };
}

// Runs as a separate process that answers its parent; it ends when the parent ends.
process.on('message', (question: SchemaQuestion) => process.send?.(answerTo(question)));
