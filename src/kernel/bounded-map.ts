/**
 * A map with at most `capacity` entries. `set` makes an entry the newest one; beyond the capacity, the oldest entry is
 * removed and given to `onEvict`. Up to half of the capacity, an entry keeps its place: nothing is evicted soon, and a
 * move makes garbage.
 */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  constructor(
    private readonly capacity: number,
    private readonly onEvict?: (value: Value, key: Key) => void,
  ) {
    super();
  }

  override set(key: Key, value: Value): this {
    if (this.size > this.capacity / 2) this.delete(key);
    super.set(key, value);
    if (this.size > this.capacity) this.evictOldest();
    return this;
  }

  /** Returns the value of a key, and makes its entry the newest one. */
  use(key: Key): Value | undefined {
    const value = this.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  private evictOldest(): void {
    const [key, value] = this.entries().next().value!;
    this.delete(key);
    this.onEvict?.(value, key);
  }
}
