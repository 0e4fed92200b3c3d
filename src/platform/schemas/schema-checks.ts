import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { systemClock, workedMs } from '../../kernel/clock.js';
import type { Violation } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { isLargerThan, mayExplode } from '../../protocol/mcp/schema/schema-size.js';
import { compileToolSchema, type CompiledSchema } from '../../protocol/mcp/schema/tool-schema.js';
import { Allowance } from './allowance.js';
import { refusal } from './schema-child.js';
import { OutsideChecks } from './outside-checks.js';

interface Known {
  readonly key: number;
  compiled?: CompiledSchema;
  /**
   * How often it may still be compiled on the event loop. A compilation that took too long may have met a busy
   * moment.
   */
  localTries: number;
}

/** The violations: at once when possible, otherwise a promise. */
export type Violations = readonly Violation[] | Promise<readonly Violation[]>;

/** Most values of a schema that compiles in a few milliseconds; most schemas of tools have fewer. */
const smallSchema = 150;
const quick = { compileMs: 20, validateMs: 20 };

/**
 * Checks arguments against the input schemas that agents publish (RE-12). Small schemas are compiled in this process,
 * within each org's share of the event loop; all others in a separate process, so that no schema within its limits
 * delays other callers (abuse 32).
 */
@Injectable()
export class SchemaChecks implements OnApplicationShutdown {
  private readonly known = new WeakMap<JsonObject, Known>();
  private readonly outside = new OutsideChecks();
  /**
   * Milliseconds of processor time for compiling: at most this plus the last compilation in one turn of the event
   * loop, then 5 % of the time.
   */
  private readonly spent = new Allowance({ most: 25, perSecond: 50 });
  private keys = 0;

  /**
   * Returns how the arguments violate the schema. For an invalid schema, or one that cannot be checked in time, it
   * returns one violation.
   * @param org the org that the compilation time is charged to.
   */
  violations(org: string, schema: Json | undefined, args: JsonObject): Violations {
    if (!isJsonObject(schema)) return answerOf(compileToolSchema(schema), args);
    const known = this.known.get(schema) ?? this.remember(schema);
    known.compiled ??= this.compileLocally(org, schema, known);
    if (known.compiled) return answerOf(known.compiled, args);
    return this.outside.violations(org, { key: known.key, schema, args });
  }

  onApplicationShutdown(): void {
    this.outside.close();
  }

  private remember(schema: JsonObject): Known {
    const isSmall = !isLargerThan(schema, smallSchema) && !mayExplode(schema);
    const known = { key: ++this.keys, localTries: isSmall ? 3 : 0 };
    this.known.set(schema, known);
    return known;
  }

  private compileLocally(org: string, schema: JsonObject, known: Known): CompiledSchema | undefined {
    if (known.localTries === 0 || !this.spent.has(org, systemClock.elapsed())) return undefined;
    known.localTries--;
    const before = workedMs();
    const compiled = compileToolSchema(schema, undefined, quick);
    this.spent.spend(org, workedMs() - before);
    return compiled.ok && compiled.isLate ? undefined : compiled;
  }
}

function answerOf(compiled: CompiledSchema, args: JsonObject): readonly Violation[] {
  return compiled.ok ? compiled.validate(args) : [refusal(compiled.reason)];
}
