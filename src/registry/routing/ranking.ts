import { drawAll, isCheaperEqual, type Chance, type Candidate, type Drawn } from './choose.js';

/**
 * Tells whether a candidate may be chosen. `hidden`: the caller must not learn that it exists; `beaten`: an eligible
 * candidate costs less and is no worse.
 */
export type Verdict = 'eligible' | 'hidden' | 'beaten' | { readonly excluded: string };

/** A candidate with its draw. */
export interface Ranked<Entry> {
  readonly entry: Entry;
  readonly drawn: Drawn;
}

/**
 * Ranks candidates by their draws before they are judged. A judgement asks policies, so each candidate is judged at
 * most once, and only when its verdict is needed. Draws do not depend on verdicts: the same seed gives the same ranks.
 */
export class Ranking<Entry extends Candidate> {
  /** All candidates, the highest score first. */
  readonly ranked: readonly Ranked<Entry>[];
  private readonly judgements = new Map<Entry, Promise<Verdict>>();

  /**
   * Creates a ranking.
   * @param options.prefersCheaper lets a candidate be beaten by a cheaper one (RE-61).
   */
  constructor(
    private readonly entries: readonly Entry[],
    private readonly judge: (entry: Entry) => Promise<Verdict>,
    private readonly options: { readonly chance: Chance; readonly prefersCheaper: boolean },
  ) {
    this.ranked = drawAll(entries, options.chance)
      .map((drawn, index) => ({ entry: entries[index]!, drawn }))
      .sort((one, other) => other.drawn.score - one.drawn.score);
  }

  async verdictOf(entry: Entry): Promise<Verdict> {
    const verdict = await this.judgeOnce(entry);
    return verdict === 'eligible' && (await this.isBeaten(entry)) ? 'beaten' : verdict;
  }

  private async isBeaten(entry: Entry): Promise<boolean> {
    if (!this.options.prefersCheaper) return false;
    for (const other of this.entries)
      if (isCheaperEqual(other, entry) && (await this.judgeOnce(other)) === 'eligible') return true;
    return false;
  }

  private judgeOnce(entry: Entry): Promise<Verdict> {
    let judgement = this.judgements.get(entry);
    if (!judgement) this.judgements.set(entry, (judgement = this.judge(entry)));
    return judgement;
  }
}

/**
 * Returns what `find` finds for the first items, at most `most` results. It never asks for more items at a time than
 * results are wanted.
 */
export async function takeFirst<Item, Found>(
  items: readonly Item[],
  most: number,
  find: (item: Item) => Promise<Found | undefined>,
): Promise<Found[]> {
  const found: Found[] = [];
  for (let next = 0; next < items.length && found.length < most;) {
    const batch = items.slice(next, next + most - found.length);
    next += batch.length;
    for (const result of await Promise.all(batch.map(find))) if (result !== undefined) found.push(result);
  }
  return found;
}
