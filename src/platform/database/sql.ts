import { BoundedMap } from '../../kernel/bounded-map.js';

/** The parameters of a statement, by name. */
export type SqlParams = Readonly<Record<string, unknown>>;

interface Positional {
  readonly text: string;
  /** The name of each position: the first is `$1`. */
  readonly names: readonly string[];
}

const statements = new BoundedMap<string, Positional>(2_000);

/**
 * Translates a statement with named parameters (`:id`) into one with positions (`$1`), which PostgreSQL reads. A name
 * may occur several times. A missing parameter, or one that the statement does not use, throws an Error: it is a
 * mistake in the code.
 */
export function positional(statement: string, params: SqlParams): { text: string; values: unknown[] } {
  let known = statements.get(statement);
  if (!known) statements.set(statement, (known = translated(statement)));
  const { text, names } = known;
  const given = Object.keys(params);
  const wrong = names.find((name) => !(name in params)) ?? given.find((name) => !names.includes(name));
  if (wrong !== undefined) throw new Error(`The parameter "${wrong}" is missing or not used: ${statement}`);
  return { text, values: names.map((name) => params[name]) };
}

function translated(statement: string): Positional {
  const names: string[] = [];
  // Not a cast (`::uuid`), and not part of a word or a literal such as '10:30'.
  const text = statement.replace(/(?<![\w:]):([a-z]\w*)/gi, (_, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  return { text, names };
}

/** SQL of the time `ms` milliseconds from now; `ms` is a number or the SQL of one. */
export function later(ms: number | string): string {
  return `now() + ${ms} * interval '1 millisecond'`;
}

/** SQL of the time `ms` milliseconds ago; `ms` is a number or the SQL of one. */
export function ago(ms: number | string): string {
  return `now() - ${ms} * interval '1 millisecond'`;
}
