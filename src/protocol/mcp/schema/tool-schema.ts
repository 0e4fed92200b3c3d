import { Script, createContext } from 'node:vm';
import { createHash } from 'node:crypto';
import type { ErrorObject, ValidateFunction } from 'ajv';
import { BoundedMap } from '../../../kernel/bounded-map.js';
import { canonicalJson } from '../../../kernel/canonical-json.js';
import { systemClock, workedMs, type Clock } from '../../../kernel/clock.js';
import type { Violation } from '../../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import { asDoubles } from '../../exact-integers.js';
import { mendSchema, type MendedSchema } from './mend-schema.js';
import { compileWith, isRefusedPattern, metaCheck } from './schema-engine.js';
import { schemaFault } from './schema-fault.js';
import { isDeeperThan, isLargerThan, mayExplode } from './schema-size.js';

export type CompiledSchema =
  | {
      readonly ok: true;
      readonly validate: (args: unknown) => Violation[];
      /** True when the compilation ran out of time. */
      readonly isLate: boolean;
    }
  | { readonly ok: false; readonly reason: string };

/** Passed time, and processor time used by this process. */
type Time = Pick<Clock, 'elapsed'> & { readonly workedMs: () => number };
const processTime: Time = { ...systemClock, workedMs };

const maxSchemaLength = 64 * 1024;
const maxSchemaDepth = 64;
const maxViolations = 20;
const maxCached = 500;
/** Arguments up to this size are checked for all errors, and without a time limit when the schema is simple. */
const smallArguments = 2_000;
/** Processor time of one compilation and one check. */
export interface SchemaLimits {
  readonly compileMs: number;
  readonly validateMs: number;
}
const defaultLimits: SchemaLimits = { compileMs: 250, validateMs: 25 };
/**
 * How long a schema that ran out of time is not tried again. After that it is, because a single delay must not block a
 * valid schema permanently.
 */
const pauseMs = 60_000;

const tooLarge = `larger than ${maxSchemaLength / 1024} KiB`;
const anyObject = { type: 'object', additionalProperties: true } as const;
const messageProperty = {
  message: {
    type: 'string',
    description:
      'What to say to the agent. Given alone it is sent as text; with other arguments, all of them are sent as data.',
  },
};
const cache = new BoundedMap<string, CompiledSchema>(maxCached);
/** The check for skills without a schema, which every call of such a skill needs. */
let anything: CompiledSchema | undefined;

/**
 * Returns the input schema of a skill as a tool: its own (RE-11), with the top level corrected for clients
 * (mendSchema), or any object when it has none (RE-13). Has no schema when no call could pass its check, as far as that
 * is visible without compiling it. Pure.
 */
export function skillSchema(schema: Json | undefined): MendedSchema {
  if (schema === undefined || schema === null || schema === true) return { schema: anyObject, problems: [] };
  if (!isJsonObject(schema)) return { problems: [], refusal: 'an input schema must be a JSON object' };
  let known = skillSchemas.get(schema);
  if (!known) skillSchemas.set(schema, (known = callableSchema(schema)));
  return known;
}

// The check of a large schema takes milliseconds, and views and catalogues need it again and again.
const skillSchemas = new WeakMap<JsonObject, MendedSchema>();

function callableSchema(schema: JsonObject): MendedSchema {
  const mended = mendSchema(schema);
  const refusal = mended.schema && callabilityFault(mended.schema);
  return refusal === undefined ? mended : { problems: mended.problems, refusal };
}

function callabilityFault(schema: JsonObject): string | undefined {
  if (!metaCheck(schema.$schema)) return unknownDialect(schema);
  return beyondLimits(schema) ?? schemaFault(schema, (pattern) => !isRefusedPattern(pattern));
}

function unknownDialect({ $schema }: JsonObject): string {
  return `unknown $schema ${JSON.stringify($schema).slice(0, 200)}`;
}

/**
 * Returns the input schema to list for a skill, even when the skill cannot be called. A skill that takes text shows the
 * property for it; any other arguments are accepted too.
 */
export function listedSchema(schema: Json | undefined, takesText = false): JsonObject {
  if (takesText) return { ...anyObject, properties: messageProperty };
  return skillSchema(schema).schema ?? { ...(isJsonObject(schema) ? schema : anyObject), type: 'object' };
}

/**
 * Says which limit of size or depth a schema exceeds. Stops early, because the exact length would need a walk through
 * the whole schema.
 */
function beyondLimits(schema: JsonObject): string | undefined {
  if (isDeeperThan(schema, maxSchemaDepth)) return `nested deeper than ${maxSchemaDepth}`;
  return isLargerThan(schema, maxSchemaLength) ? tooLarge : undefined;
}

/**
 * Compiles a JSON Schema from outside (2020-12 when it names none, 2019-09, draft-07) to a check of a tool's arguments
 * (RE-12). The schema may be hostile: it has no remote references, patterns run in linear time (RE2), it has at most 64
 * KiB and 64 levels, 250 ms of processor time to compile and 25 ms for each check that may take long. For a minute
 * after it ran out of time, such arguments are refused at once (abuse 32). Compiled at first use and cached by content,
 * at most 500. Arguments are an object, so a schema that does not allow an object at its top `type` is refused. Never
 * throws.
 */
export function compileToolSchema(
  schema: Json | undefined,
  time: Time = processTime,
  limits = defaultLimits,
): CompiledSchema {
  if (schema === undefined || schema === null || schema === true) return (anything ??= compileToolSchema(anyObject));
  if (!isJsonObject(schema)) return refusedSchema('an input schema must be a JSON object');
  const tooMuch = beyondLimits(schema);
  if (tooMuch !== undefined) return refusedSchema(tooMuch);
  let text: string;
  try {
    text = canonicalJson(schema);
  } catch (error) {
    return refusedSchema((error as Error).message);
  }
  if (text.length > maxSchemaLength) return refusedSchema(tooLarge);
  const key = createHash('sha256').update(text).digest('hex');
  const cached = cache.get(key) ?? prepare(schema, time, limits);
  cache.delete(key);
  // A schema that ran out of time under a custom, shorter limit may still compile under the default one.
  if (cached.ok && cached.isLate && limits !== defaultLimits) return cached;
  cache.set(key, cached);
  return cached;
}

function prepare(schema: JsonObject, time: Time, limits: SchemaLimits): CompiledSchema {
  const isValid = metaCheck(schema.$schema);
  if (!isValid) return refusedSchema(unknownDialect(schema));
  const type = schema.type;
  if (type !== undefined && type !== 'object' && !(Array.isArray(type) && type.includes('object'))) {
    return refusedSchema('the arguments of a tool are an object, but the type of the schema does not allow one');
  }
  const check = new TimedCheck(schema, isValid, time, limits);
  let isLate = false;
  try {
    check.compile();
  } catch (error) {
    isLate = isTimeout(error);
    if (!isLate) return refusedSchema((error as Error).message.slice(0, 500));
  }
  return { ok: true, validate: (args) => check.validate(args), isLate };
}

/**
 * The check of one schema with its time limits. A compilation or check that runs out of time pauses it for a minute.
 */
class TimedCheck {
  private first: ValidateFunction | undefined;
  private all: ValidateFunction | undefined;
  private readonly plain: boolean;
  private pausedUntil = -Infinity;

  constructor(
    private readonly schema: JsonObject,
    private readonly isValid: (schema: JsonObject) => boolean,
    private readonly time: Time,
    private readonly limits: SchemaLimits,
  ) {
    this.plain = !mayExplode(schema);
  }

  /** Compiles the schema on the first call. Throws when it is invalid and when the time is over. */
  compile(): ValidateFunction {
    return (this.first ??= this.timed(this.limits.compileMs, () => {
      if (!this.isValid(this.schema)) throw new Error('not a valid JSON Schema of its dialect');
      return compileWith(this.schema, { allErrors: false });
    }));
  }

  /** Checks arguments. Integers beyond 2^53 are checked as the nearest doubles, because the engine knows no others. */
  validate(given: unknown): Violation[] {
    const args = asDoubles(given);
    if (!isJsonObject(args)) return [{ field: '', description: 'must be object' }];
    try {
      const first = this.compile();
      if (!this.plain || isLargerThan(args, smallArguments)) {
        return this.timed(this.limits.validateMs, () => violationsOf(first, args));
      }
      const violations = violationsOf(first, args);
      return violations.length === 0 ? violations : this.allViolations(args, violations);
    } catch {
      return [{ field: '', description: 'could not be checked in time' }];
    }
  }

  /** Returns all errors of small arguments; only the first one when the second compilation takes too long. */
  private allViolations(args: JsonObject, first: Violation[]): Violation[] {
    try {
      this.all ??= this.timed(this.limits.compileMs, () => compileWith(this.schema, { allErrors: true }));
      return violationsOf(this.all, args);
    } catch {
      return first;
    }
  }

  /**
   * Runs work with a limit of processor time. When a busy machine stopped the process meanwhile, the work is started
   * again.
   */
  private timed<Result>(limitMs: number, work: () => Result): Result {
    if (this.time.elapsed() < this.pausedUntil) throw new Error('an earlier check of this schema ran out of time');
    const before = this.time.workedMs();
    for (;;) {
      try {
        return runWithin(limitMs, work);
      } catch (error) {
        if (!isTimeout(error)) throw error;
        if (this.time.workedMs() - before < limitMs) continue;
        this.pausedUntil = this.time.elapsed() + pauseMs;
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
const sandbox = createContext({ work: undefined as unknown });

/** Runs synchronous work and stops it anywhere when the time is over: V8 itself ends the execution. */
function runWithin<Result>(timeout: number, work: () => Result): Result {
  sandbox.work = work;
  return call.runInContext(sandbox, { timeout }) as Result;
}

function isTimeout(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}

function refusedSchema(reason: string): CompiledSchema {
  return { ok: false, reason };
}
