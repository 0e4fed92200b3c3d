import type { Json, JsonObject } from '../src/kernel/json.js';
import { SchemaChecks } from '../src/platform/schemas/schema-checks.js';
import { CedarEngine } from '../src/policy/cedar/cedar.js';
import type { PolicyCall } from '../src/policy/cedar/entities.js';
import { compiling, overweight, type PolicySet } from '../src/policy/cedar/policy-set.js';
import { validatingPolicyText } from '../src/policy/cedar/validate.js';
import { leastOf, LoopBlocks } from './support/gateway/loop-blocks.js';
import { Random } from './support/fuzz/random.js';

/** Number of cases. `RIALTO_FUZZ_CASES=20000` makes a long run; the same seed gives the same cases. */
const cases = Number(process.env.RIALTO_FUZZ_CASES ?? 150);
const seed = Number(process.env.RIALTO_FUZZ_SEED ?? 20_261_125);
/** Limit for one turn of the event loop (X2.3, X2.4), in milliseconds of CPU time. */
const mostMs = 50;

const letters = 'ab*\\" /äß漢';

/** Generates policies: repetitive ones, and ones that are expensive to compile, to validate or to evaluate. */
class Policies {
  constructor(private readonly random: Random) {}

  text(): string {
    const { random } = this;
    const count = random.chance(0.8) ? 1 : 1 + random.whole(8);
    return Array.from({ length: count }, () => {
      const head = random.pick(['principal', 'principal is User', 'principal == User::"u"', 'principal in Group::"g"']);
      const body = this.expression(1 + random.whole(5));
      return `${random.pick(['permit', 'forbid'])}(${head}, action, resource) when { ${body} };`;
    }).join('\n');
  }

  private expression(depth: number): string {
    const { random } = this;
    if (depth === 0) return this.leaf();
    const inner = (): string => this.expression(depth - 1);
    switch (random.whole(6)) {
      case 0:
        return `(${inner()} && ${inner()})`;
      case 1:
        return `(${inner()} || ${inner()})`;
      case 2:
        return `!(${inner()})`;
      case 3:
        return `(if ${inner()} then ${inner()} else ${inner()})`;
      case 4:
        return Array.from({ length: 1 + random.whole(200) }, () => this.leaf()).join(random.pick([' && ', ' || ']));
      default:
        return this.leaf();
    }
  }

  private leaf(): string {
    const { random } = this;
    const word = JSON.stringify(this.word(40)).replace(/[^\x20-\x7e]/g, '?');
    const pattern = word.replaceAll('\\\\', '\\*');
    const list = (item: () => string): string => `[${Array.from({ length: 1 + random.whole(400) }, item).join(', ')}]`;
    return random.pick([
      () => `context.depth ${random.pick(['<', '<=', '==', '!=', '>', '>='])} ${random.whole(9)}`,
      () => `context.depth${` ${random.pick(['+', '-', '*'])} 1`.repeat(random.whole(60))} == 3`,
      () => `${list(() => String(random.whole(1_000_000)))}.contains(context.depth)`,
      () => `context.input.hasTag(${word}) && context.input.getTag(${word}) like ${pattern}`,
      () => `context.input.hasTag("x") && context.input.getTag("x") like "${'*a'.repeat(random.whole(60))}"`,
      () => `principal in ${list(() => `Group::${JSON.stringify(`g${random.whole(500)}`)}`)}`,
      () => `{ a: ${random.whole(9)}, b: { c: ${word} } }.b.c == ${word}`,
      () => `ip("10.0.0.${random.whole(256)}").isInRange(ip("10.0.0.0/${random.whole(33)}"))`,
      () => `decimal("${random.whole(9_000)}.${random.whole(9_999)}").lessThan(decimal("1.0"))`,
      () => random.pick(['true', 'false', 'principal.role == "admin"', 'context has none', 'resource.none']),
    ])();
  }

  private word(most: number): string {
    return Array.from({ length: this.random.whole(most) }, () => this.random.pick([...letters])).join('');
  }
}

/** Generates tool schemas: wide, deep, with patterns, references and combinations. */
class Schemas {
  constructor(private readonly random: Random) {}

  schema(depth = 1 + this.random.whole(5)): JsonObject {
    const { random } = this;
    const some = (most: number): JsonObject[] =>
      Array.from({ length: 1 + random.whole(most) }, () => this.schema(Math.max(0, depth - 1)));
    if (depth === 0) return this.leaf();
    return random.pick<() => JsonObject>([
      () => this.object(depth, random.chance(0.1) ? 300 : 8),
      () => ({ type: 'array', items: this.schema(depth - 1), uniqueItems: random.chance(0.3) }),
      () => ({ [random.pick(['anyOf', 'oneOf', 'allOf'])]: some(6) }),
      () => ({ not: this.schema(depth - 1) }),
      () => ({ if: this.schema(depth - 1), then: this.schema(depth - 1), else: this.schema(depth - 1) }),
      () => ({ $defs: { a: this.schema(depth - 1) }, allOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }] }),
      () => ({ $defs: { a: { properties: { next: { $ref: '#/$defs/a' } } } }, $ref: '#/$defs/a' }),
      () => ({ patternProperties: { [this.pattern()]: this.schema(depth - 1) } }),
    ])();
  }

  args(): JsonObject {
    const { random } = this;
    const value = (depth: number): Json => {
      if (depth === 0 || random.chance(0.3)) return random.pick<Json>(['a'.repeat(random.whole(5_000)), 1, null, true]);
      if (random.chance(0.3)) return Array.from({ length: random.whole(30) }, () => value(depth - 1));
      return Object.fromEntries(Array.from({ length: random.whole(8) }, (_, at) => [`p${at}`, value(depth - 1)]));
    };
    return { p0: value(4), p1: value(3), x: 'a'.repeat(random.whole(60_000)) };
  }

  private object(depth: number, most: number): JsonObject {
    const names = Array.from({ length: 1 + this.random.whole(most) }, (_, at) => `p${at}`);
    const properties = Object.fromEntries(names.map((name) => [name, this.schema(Math.min(depth - 1, 2))]));
    return { type: 'object', properties, required: names.filter(() => this.random.chance(0.2)) };
  }

  private leaf(): JsonObject {
    const { random } = this;
    return random.pick<() => JsonObject>([
      () => ({ type: random.pick(['string', 'number', 'integer', 'boolean', 'null', 'object', 'array']) }),
      () => ({ type: 'string', pattern: this.pattern() }),
      () => ({ enum: Array.from({ length: 1 + random.whole(300) }, (_, at) => `e${at}`) }),
      () => ({ type: 'string', minLength: random.whole(9), maxLength: random.whole(9_000), format: 'uri' }),
      () => ({ multipleOf: 0.1, minimum: -random.whole(9), exclusiveMaximum: random.whole(9) }),
      () => ({ const: { a: [1, { b: 'c' }] } }),
    ])();
  }

  private pattern(): string {
    return this.random.pick([
      '^(a+)+$',
      '(a|aa)*b',
      '^p[0-9]$',
      '(.*a){12}',
      '[a-z]{1,50}z',
      '^(([a-z])+.)+[A-Z]([a-z])+$',
    ]);
  }
}

const invoke: PolicyCall = {
  principal: { kind: 'user', id: 'u', role: 'member', groups: ['g', 'g1'] },
  action: 'a2a_invoke',
  resource: { type: 'Skill', id: 'a.b', parent: 'a' },
  surface: 'mcp',
  depth: 0,
  time: 0,
  args: { x: 'a'.repeat(4_000), a: 'b' },
};

/** Runs work step by step. Returns its result and the CPU time of its longest step. */
function run<Result>(work: Generator<void, Result>): { result: Result; longest: number } {
  for (let longest = 0; ;) {
    const before = LoopBlocks.worked();
    const { done, value } = work.next();
    longest = Math.max(longest, LoopBlocks.worked() - before);
    if (done) return { result: value, longest };
  }
}

const timeoutMs = 600_000 + cases * 100;

(LoopBlocks.isPossible ? describe : describe.skip)(
  'policies and schemas of a tenant do not block the event loop',
  () => {
    it(
      `${cases} policies within the limits`,
      async () => {
        const policies = new Policies(new Random(seed));
        const engine = new CedarEngine();
        const slow: { ms: number; what: string; text: string }[] = [];
        run(validatingPolicyText('first', 'permit(principal, action, resource);')); // loads Cedar
        let taken = 0;
        for (let index = 0; index < cases; index++) {
          const text = policies.text();
          const note = async (what: string, measure: () => number): Promise<void> => {
            const ms = await leastOf(mostMs, measure);
            if (ms >= mostMs) slow.push({ ms, what, text });
          };
          let faults: readonly unknown[] = [];
          await note('judged', () => {
            const { result, longest } = run(validatingPolicyText('fuzz', text));
            faults = result;
            return longest;
          });
          if (faults.length > 0) continue;
          let set: PolicySet | undefined;
          await note('compiled', () => {
            const { result, longest } = run<PolicySet>(compiling([{ name: 'fuzz', text }]));
            set = result;
            return longest;
          });
          if (overweight(set!) !== undefined) continue;
          taken++;
          await note('decided', () => {
            engine.releaseSet(set!);
            const before = LoopBlocks.worked();
            engine.decide(set!, invoke);
            return LoopBlocks.worked() - before;
          });
        }
        expect(slow.sort((one, other) => other.ms - one.ms).slice(0, 3)).toEqual([]);
        expect(taken).toBeGreaterThan(cases / 10);
      },
      timeoutMs,
    );

    it(
      `${cases} schemas, with arguments for each`,
      async () => {
        const schemas = new Schemas(new Random(seed));
        const checks = new SchemaChecks();
        const slow: { ms: number; schema: string }[] = [];
        await checks.violations('org', { type: 'object' }, {}); // loads the compiler
        let judged = 0;
        for (let index = 0; index < cases; index++) {
          const [schema, args] = [schemas.schema(), schemas.args()];
          const ms = await leastOf(mostMs, async (attempt) => {
            const fresh = structuredClone(schema);
            const before = LoopBlocks.worked();
            const violations = checks.violations(`org${attempt}`, fresh, args);
            const took = LoopBlocks.worked() - before;
            await violations;
            return took;
          });
          if (ms >= mostMs) slow.push({ ms, schema: JSON.stringify(schema).slice(0, 2_000) });
          judged++;
        }
        checks.onApplicationShutdown();
        expect(slow.sort((one, other) => other.ms - one.ms).slice(0, 3)).toEqual([]);
        expect(judged).toBe(cases);
      },
      timeoutMs,
    );
  },
);
