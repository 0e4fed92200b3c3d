import { Script, createContext } from 'node:vm';
import { createHash } from 'node:crypto';
import type { ErrorObject, ValidateFunction } from 'ajv';
import { canonicalJson } from '../../kernel/canonical-json.js';
import { systemClock, workedMs, type Clock } from '../../kernel/clock.js';
import type { Violation } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { asDoubles } from '../exact-integers.js';
import { mendSchema, type MendedSchema } from './mend-schema.js';
import { compileWith, isCheckable, metaCheck } from './schema-engine.js';
import { schemaFault } from './schema-fault.js';
import { isDeeperThan, isLargerThan, mayExplode } from './schema-size.js';

export type CompiledSchema =
  | {
      readonly ok: true;
      readonly validate: (args: unknown) => Violation[];
      /** It could not be compiled in time. */
      readonly isLate: boolean;
    }
  | { readonly ok: false; readonly reason: string };

/** What passes, and what this process worked meanwhile. */
type Time = Pick<Clock, 'elapsed'> & { readonly workedMs: () => number };
const ourTime: Time = { ...systemClock, workedMs };

const maxSchemaLength = 64 * 1024;
const maxSchemaDepth = 64;
const maxViolations = 20;
const maxCached = 500;
/** Arguments up to this size are looked through for every error, and unguarded when the schema is plain. */
const smallArguments = 2_000;
/** Processor time of one compilation and one check. */
export interface SchemaLimits {
  readonly compileMs: number;
  readonly validateMs: number;
}
const usualLimits: SchemaLimits = { compileMs: 250, validateMs: 25 };
/** A schema that ran out of time is not tried again before: one unlucky moment must not condemn an honest one for good. */
const restMs = 60_000;

const tooLarge = `larger than ${maxSchemaLength / 1024} KiB`;
const anyObject = { type: 'object', additionalProperties: true } as const;
const messageProperty = {
  message: {
    type: 'string',
    description:
      'What to say to the agent. Given alone it is sent as text; with other arguments, all of them are sent as data.',
  },
};
const cache = new Map<string, CompiledSchema>();

/**
 * The input schema of a skill as a tool: its own (RE-11), with the top that clients want (mendSchema); without one any object (RE-13).
 * Without an answer where no call could pass its check, as far as that is seen without compiling it. Pure.
 */
export function skillSchema(schema: Json | undefined): MendedSchema {
  if (schema === undefined || schema === null || schema === true) return { schema: anyObject, problems: [] };
  if (!isJsonObject(schema)) return { problems: [], refusal: 'an input schema is a JSON object' };
  const mended = mendSchema(schema);
  const refusal = mended.schema && whyUncallable(mended.schema);
  return refusal === undefined ? mended : { problems: mended.problems, refusal };
}

function whyUncallable(schema: JsonObject): string | undefined {
  if (!metaCheck(schema.$schema)) return unknownDialect(schema);
  return beyondLimits(schema) ?? schemaFault(schema, isCheckable);
}

function unknownDialect({ $schema }: JsonObject): string {
  return `unknown $schema ${JSON.stringify($schema).slice(0, 200)}`;
}

/**
 * The input schema to list for a skill, whether or not it can be called. A skill that takes text shows where to put it; any other
 * arguments pass as before.
 */
export function listedSchema(schema: Json | undefined, takesText = false): JsonObject {
  if (takesText) return { ...anyObject, properties: messageProperty };
  return skillSchema(schema).schema ?? { ...(isJsonObject(schema) ? schema : anyObject), type: 'object' };
}

/** Why a schema is more than is looked at; stops early, where the exact length costs a walk through all. */
function beyondLimits(schema: JsonObject): string | undefined {
  if (isDeeperThan(schema, maxSchemaDepth)) return `nested deeper than ${maxSchemaDepth}`;
  return isLargerThan(schema, maxSchemaLength) ? tooLarge : undefined;
}

/**
 * A foreign JSON Schema (2020-12 when it names none, 2019-09, draft-07) to a check of a tool's arguments (RE-12). The schema is an
 * adversary: no remote references, patterns in linear time (RE2), 64 KiB and 64 levels at most, 250 ms of processor time to compile
 * and 25 ms for arguments that may take long. One that ran out of time refuses such arguments at once for a minute (abuse 32).
 * Compiled at first use, kept by content, 500 at most. Arguments are an object, so a schema whose top `type` does not allow one is
 * refused. Nothing in it throws.
 */
export function compileToolSchema(
  schema: Json | undefined,
  time: Time = ourTime,
  limits = usualLimits,
): CompiledSchema {
  if (schema === undefined || schema === null || schema === true) return compileToolSchema(anyObject, time, limits);
  if (!isJsonObject(schema)) return refuse('an input schema is a JSON object');
  const tooMuch = beyondLimits(schema);
  if (tooMuch !== undefined) return refuse(tooMuch);
  let text: string;
  try {
    text = canonicalJson(schema);
  } catch (error) {
    return refuse((error as Error).message);
  }
  if (text.length > maxSchemaLength) return refuse(tooLarge);
  const key = createHash('sha256').update(text).digest('hex');
  const cached = cache.get(key) ?? prepare(schema, time, limits);
  cache.delete(key);
  // Out of time by a shorter limit than the usual one says little of it.
  if (cached.ok && cached.isLate && limits !== usualLimits) return cached;
  cache.set(key, cached);
  if (cache.size > maxCached) cache.delete(cache.keys().next().value!);
  return cached;
}

function prepare(schema: JsonObject, time: Time, limits: SchemaLimits): CompiledSchema {
  const isValid = metaCheck(schema.$schema);
  if (!isValid) return refuse(unknownDialect(schema));
  const type = schema.type;
  if (type !== undefined && type !== 'object' && !(Array.isArray(type) && type.includes('object'))) {
    return refuse('the arguments of a tool are an object, the schema asks for something else');
  }
  const check = new TimedCheck(schema, isValid, time, limits);
  let isLate = false;
  try {
    check.compile();
  } catch (error) {
    isLate = isTimeout(error);
    if (!isLate) return refuse((error as Error).message.slice(0, 500));
  }
  return { ok: true, validate: (args) => check.validate(args), isLate };
}

/** One schema and what it has left of its patience: whatever runs out of time puts it to rest. */
class TimedCheck {
  private first: ValidateFunction | undefined;
  private all: ValidateFunction | undefined;
  private readonly plain: boolean;
  private restsUntil = -Infinity;

  constructor(
    private readonly schema: JsonObject,
    private readonly isValid: (schema: JsonObject) => boolean,
    private readonly time: Time,
    private readonly limits: SchemaLimits,
  ) {
    this.plain = !mayExplode(schema);
  }

  /** Throws for what is no schema, and when the time is over. */
  compile(): ValidateFunction {
    return (this.first ??= this.timed(this.limits.compileMs, () => {
      if (!this.isValid(this.schema)) throw new Error('not a valid JSON Schema of its dialect');
      return compileWith(this.schema, { allErrors: false });
    }));
  }

  /** Integers beyond 2^53 are judged as the nearest doubles: the engine knows no others. */
  validate(given: unknown): Violation[] {
    const args = asDoubles(given);
    if (!isJsonObject(args)) return [{ field: '', description: 'must be object' }];
    try {
      const first = this.compile();
      if (!this.plain || isLargerThan(args, smallArguments)) {
        return this.timed(this.limits.validateMs, () => violationsOf(first, args));
      }
      const violations = violationsOf(first, args);
      return violations.length === 0 ? violations : this.everything(args, violations);
    } catch {
      return [{ field: '', description: 'could not be checked in time' }];
    }
  }

  /** Every error of small arguments; the first one when the second compilation takes too long. */
  private everything(args: JsonObject, first: Violation[]): Violation[] {
    try {
      this.all ??= this.timed(this.limits.compileMs, () => compileWith(this.schema, { allErrors: true }));
      return violationsOf(this.all, args);
    } catch {
      return first;
    }
  }

  /** Time that a busy machine gave to others does not count: then the work is begun anew. */
  private timed<Result>(limitMs: number, work: () => Result): Result {
    if (this.time.elapsed() < this.restsUntil) throw new Error('it ran out of time before');
    const before = this.time.workedMs();
    for (;;) {
      try {
        return within(limitMs, work);
      } catch (error) {
        if (!isTimeout(error)) throw error;
        if (this.time.workedMs() - before < limitMs) continue;
        this.restsUntil = this.time.elapsed() + restMs;
        throw error;
      }
    }
  }
}

function violationsOf(check: ValidateFunction, args: JsonObject): Violation[] {
  return check(args) ? [] : (check.errors ?? []).slice(0, maxViolations).map(violationOf);
}

function violationOf({ instancePath, message, params, keyword }: ErrorObject): Violation {
  const extra: unknown = keyword === 'additionalProperties' ? params.additionalProperty : undefined;
  const description = message ?? `breaks ${keyword}`;
  return {
    field: instancePath,
    description: typeof extra === 'string' ? `${description}: ${extra.slice(0, 100)}` : description,
  };
}

const call = new Script('work()');
const box = createContext({ work: undefined as unknown });

/** Runs synchronous work and stops it, wherever it is, when the time is over: V8 ends the execution itself. */
function within<Result>(timeout: number, work: () => Result): Result {
  box.work = work;
  return call.runInContext(box, { timeout }) as Result;
}

function isTimeout(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}

function refuse(reason: string): CompiledSchema {
  return { ok: false, reason };
}
