/**
 * The allowed content of an object: members with the shape of their values. `[shape]` is a list, `leaf` is any value
 * but null, `json` is any JSON.
 */
export type Shape = 'leaf' | 'json' | readonly [Shape] | { readonly [member: string]: Shape };

/**
 * Returns the value with only the members of its shape: no member of the gateway's own, no undefined, no null outside
 * free JSON. Returns the value itself when nothing must be removed, which is the usual case; that check allocates no
 * memory.
 */
export function shaped<Value>(value: Value, shape: Shape): Value {
  return fits(value, shape) ? value : (cut(value, shape) as Value);
}

function fits(value: unknown, shape: Shape): boolean {
  if (value === undefined) return false;
  if (shape === 'json') return true;
  if (value === null) return false;
  if (shape === 'leaf') return true;
  if (isList(shape)) return (value as unknown[]).every((item) => fits(item, shape[0]));
  for (const name in value) {
    const inner = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (inner === undefined || !fits((value as Record<string, unknown>)[name], inner)) return false;
  }
  return true;
}

function cut(value: unknown, shape: Shape): unknown {
  if (shape === 'json') return value;
  if (shape === 'leaf') return value ?? undefined;
  if (isList(shape)) return (value as unknown[]).map((item) => cut(item, shape[0]));
  const result: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(shape)) {
    const given = (value as Record<string, unknown>)[name];
    if (given !== undefined && (given !== null || inner === 'json')) result[name] = cut(given, inner);
  }
  return result;
}

function isList(shape: Shape): shape is readonly [Shape] {
  return Array.isArray(shape);
}
