import { BoundedMap } from '../../kernel/bounded-map.js';
import { systemClock } from '../../kernel/clock.js';

export interface SnapshotSource<Value> {
  /** Returns a cheap text that changes when the rows behind a snapshot change. */
  probe(key: string): Promise<string>;
  /** @param previous the value of an earlier version, which may share what has not changed. */
  load(key: string, version: string, previous: Value | undefined): Promise<Value>;
  /** Releases a value that is no longer used. */
  release?(value: Value): void;
}

interface Entry<Value> {
  version: string;
  value: Value;
  checkedAt: number;
}

/**
 * Caches values that every request reads and that change rarely, by key. A notice expires a value at once. A lost
 * notice costs at most `maxAgeMs`, because the version is then probed.
 */
export class SnapshotCache<Value> {
  private readonly entries: BoundedMap<string, Entry<Value>>;
  private readonly loading = new Map<string, Promise<Value>>();

  constructor(
    private readonly source: SnapshotSource<Value>,
    private readonly maxAgeMs = 1_000,
    maxEntries = 500,
  ) {
    this.entries = new BoundedMap(maxEntries, ({ value }) => this.source.release?.(value));
  }

  /** Returns the value when it is fresh, without a promise: for hot paths. */
  peek(key: string): Value | undefined {
    const entry = this.entries.get(key);
    return entry && systemClock.elapsed() - entry.checkedAt < this.maxAgeMs ? entry.value : undefined;
  }

  get(key: string): Promise<Value> {
    const fresh = this.peek(key);
    if (fresh !== undefined) return Promise.resolve(fresh);
    let loading = this.loading.get(key);
    if (!loading) {
      const begun: Promise<Value> = this.refresh(key, () => this.loading.get(key) === begun).finally(() => {
        if (this.loading.get(key) === begun) this.loading.delete(key);
      });
      loading = begun;
      this.loading.set(key, loading);
    }
    return loading;
  }

  /**
   * Called when the rows of a key changed: the next reader probes again. A load that is running may have read the old
   * rows.
   */
  expire(key: string): void {
    const entry = this.entries.get(key);
    if (entry) entry.checkedAt = -Infinity;
    this.loading.delete(key);
  }

  /** Like `expire` for all keys, including those that are loaded for the first time. */
  expireAll(): void {
    for (const entry of this.entries.values()) entry.checkedAt = -Infinity;
    this.loading.clear();
  }

  /**
   * `isCurrent` returns false when the key expired meanwhile: the loaded value answers those who waited, but is not
   * cached.
   */
  private async refresh(key: string, isCurrent: () => boolean): Promise<Value> {
    const checkedAt = systemClock.elapsed();
    const version = await this.source.probe(key);
    const entry = this.entries.get(key);
    if (entry?.version === version) {
      if (isCurrent()) entry.checkedAt = checkedAt;
      return entry.value;
    }
    const value = await this.source.load(key, version, entry?.value);
    if (!isCurrent()) return value;
    const old = this.entries.get(key);
    this.entries.set(key, { version, value, checkedAt });
    if (old) this.source.release?.(old.value);
    return value;
  }
}
