import { systemClock } from '../../kernel/clock.js';

export interface SnapshotSource<Value> {
  /** Returns a cheap text that changes when the rows behind a snapshot change. */
  probe(key: string): Promise<string>;
  load(key: string, version: string): Promise<Value>;
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
  private readonly entries = new Map<string, Entry<Value>>();
  private readonly loading = new Map<string, Promise<Value>>();

  constructor(
    private readonly source: SnapshotSource<Value>,
    private readonly maxAgeMs = 1_000,
    private readonly maxEntries = 500,
  ) {}

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

  expireAll(): void {
    for (const key of this.entries.keys()) this.expire(key);
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
    const value = await this.source.load(key, version);
    if (!isCurrent()) return value;
    const old = this.entries.get(key);
    this.entries.delete(key);
    this.entries.set(key, { version, value, checkedAt });
    if (old) this.source.release?.(old.value);
    if (this.entries.size > this.maxEntries) this.evict();
    return value;
  }

  private evict(): void {
    const [key, entry] = this.entries.entries().next().value!;
    this.entries.delete(key);
    this.source.release?.(entry.value);
  }
}
