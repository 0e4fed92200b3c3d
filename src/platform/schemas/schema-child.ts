import type { Violation } from '../../kernel/errors.js';
import type { Json } from '../../kernel/json.js';
import { compileToolSchema, type CompiledSchema, type SchemaLimits } from '../../protocol/mcp/tool-schema.js';

/** What the process is asked: arguments, and their schema by a number; the schema itself where that was not sent before. */
export interface SchemaQuestion {
  readonly key: number;
  readonly schema?: Json;
  readonly args: unknown;
}

/** `unknown`: that schema is not kept any more. */
export type SchemaAnswer = { readonly violations: readonly Violation[] } | { readonly unknown: true };

/** Nobody else waits for this event loop. */
const limits: SchemaLimits = { compileMs: 1_000, validateMs: 100 };
/** Compiled, one of 64 KiB holds 4 MB. */
const mostKept = 25;
const kept = new Map<number, CompiledSchema>();

/** What is said of arguments whose schema is none. */
export function refusal(reason: string): Violation {
  return { field: '', description: `the agent's input schema is refused: ${reason}` };
}

function answerTo({ key, schema, args }: SchemaQuestion): SchemaAnswer {
  const compiled = schema === undefined ? kept.get(key) : compileToolSchema(schema, undefined, limits);
  if (!compiled) return { unknown: true };
  kept.delete(key);
  kept.set(key, compiled);
  if (kept.size > mostKept) kept.delete(kept.keys().next().value!);
  return { violations: compiled.ok ? compiled.validate(args) : [refusal(compiled.reason)] };
}

// A process of its own, whose parent asks; it ends with its parent, when nothing keeps it any more.
process.on('message', (question: SchemaQuestion) => process.send?.(answerTo(question)));
