/** Estimates the number of characters in a value without serialising it, for limits on what is stored. */
export function weightOf(value: unknown): number {
  let weight = 0;
  const stack: unknown[] = [value];
  while (stack.length > 0) {
    const item = stack.pop();
    if (typeof item === 'string') weight += item.length;
    else if (typeof item === 'object' && item !== null) {
      for (const name of Object.keys(item)) {
        weight += name.length;
        stack.push((item as Record<string, unknown>)[name]);
      }
    } else weight += 8;
  }
  return weight;
}
