/**
 * A map with at most `capacity` entries. `set` makes an entry the newest one; beyond the capacity, the oldest entry is
 * removed and given to `onEvict`.
 */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  constructor(
    private readonly capacity: number,
    private readonly onEvict?: (value: Value, key: Key) => void,
  ) {
    super();
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
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
