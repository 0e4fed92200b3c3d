/** A deterministic random generator: the same seed gives the same choices (mulberry32, a public-domain generator). */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** Returns a number in [0, 1). */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** Returns an integer in [0, below). */
  whole(below: number): number {
    return Math.floor(this.next() * below);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.whole(items.length)]!;
  }

  /** Returns the same items in a random order. */
  shuffled<Item>(items: readonly Item[]): Item[] {
    const all = [...items];
    for (let index = all.length - 1; index > 0; index--) {
      const other = this.whole(index + 1);
      [all[index], all[other]] = [all[other]!, all[index]!];
    }
    return all;
  }
}
