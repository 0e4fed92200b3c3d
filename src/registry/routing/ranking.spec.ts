import { candidate, evenFactors } from '../../../test/support/checks/candidates.js';
import { chanceOf, choose, type Candidate } from './choose.js';
import { Ranking, takeFirst, type Verdict } from './ranking.js';

/** A ranking with a record of the candidates that were judged. By default each is eligible. */
function rankingOf(
  entries: readonly Candidate[],
  { seed = 3, prefersCheaper = false, judge = (): Verdict => 'eligible' as const }: RankingOptions = {},
) {
  const judged: Candidate[] = [];
  const asked = (entry: Candidate): Promise<Verdict> => {
    judged.push(entry);
    return Promise.resolve(judge(entry));
  };
  const ranking = new Ranking(entries, asked, { chance: chanceOf(seed), prefersCheaper });
  const first = (most: number) =>
    takeFirst(ranking.ranked, most, async ({ entry }) =>
      (await ranking.verdictOf(entry)) === 'eligible' ? entry : undefined,
    );
  return { ranking, judged, first };
}

interface RankingOptions {
  readonly seed?: number;
  readonly prefersCheaper?: boolean;
  readonly judge?: (entry: Candidate) => Verdict;
}

describe('a ranking', () => {
  const many = Array.from({ length: 1_000 }, () => candidate());

  it('judges one of 1,000 candidates when the best one is eligible: the one that a choice takes', async () => {
    const { judged, first } = rankingOf(many);
    const [best] = await first(1);
    expect(judged).toEqual([best]);
    expect(best).toBe(many[choose(many, chanceOf(3)).best]);
  });

  it('judges the next one while the best is hidden or excluded, each once', async () => {
    const { ranking } = rankingOf(many);
    const [one, two, three] = ranking.ranked.map(({ entry }) => entry);
    const judge = (entry: Candidate): Verdict =>
      entry === one ? 'hidden' : entry === two ? { excluded: 'no' } : 'eligible';
    const second = rankingOf(many, { judge });
    expect(await second.first(1)).toEqual([three]);
    expect(await second.first(1)).toEqual([three]);
    expect(second.judged).toEqual([one, two, three]);
  });

  it('judges no more than are wanted, and finds all when more are wanted than exist', async () => {
    const { judged, first } = rankingOf(many);
    expect(await first(20)).toHaveLength(20);
    expect(judged).toHaveLength(20);
    expect(await first(2_000)).toHaveLength(1_000);
  });

  it('has ranks that do not depend on verdicts, and keeps the order of equal ones', () => {
    const three = [candidate(), candidate({ successes: 3 }), candidate({ failures: 4 })];
    const excluding = rankingOf(three, { judge: () => ({ excluded: 'no' }) });
    expect(excluding.ranking.ranked).toEqual(rankingOf(three).ranking.ranked);
    const zero = [candidate({ fit: 0 }), candidate({ fit: 0 })];
    expect(rankingOf(zero).ranking.ranked.map(({ entry }) => entry)).toEqual(zero);
  });
});

describe('RE-61 with prefersCheaper', () => {
  const cheap = candidate({ cost: 1, successes: 3, failures: 1 });
  const expensive = candidate({ cost: 2, successes: 3, failures: 1 });
  const verdicts = async (entries: readonly Candidate[], options: RankingOptions = {}) => {
    const { ranking } = rankingOf(entries, { prefersCheaper: true, ...options });
    return Promise.all(entries.map((entry) => ranking.verdictOf(entry)));
  };

  it('chooses the cheaper of two equal agents for every seed; without it, draws for both', async () => {
    const picked = new Set<number | undefined>();
    for (let seed = 0; seed < 50; seed++) {
      const both = [expensive, cheap];
      expect(await rankingOf(both, { seed, prefersCheaper: true }).first(2)).toEqual([cheap]);
      picked.add((await rankingOf(both, { seed }).first(1))[0]?.cost);
    }
    expect(picked).toEqual(new Set([1, 2]));
  });

  it('keeps both of two equal agents with the same price', async () => {
    expect(await verdicts([expensive, { ...cheap, cost: 2 }])).toEqual(['eligible', 'eligible']);
  });

  it.each([
    ['fit', { fit: 0.9 }],
    ['health', { factors: { ...evenFactors, health: 0.8 } }],
    ['load', { factors: { ...evenFactors, load: 0.5 } }],
    ['success', { failures: 2 }],
  ])('keeps the more expensive agent when the cheaper one is worse in %s', async (_what, worse) => {
    expect(await verdicts([expensive, { ...cheap, ...worse }])).toEqual(['eligible', 'eligible']);
  });

  it('keeps the more expensive agent when the cheaper one is not eligible', async () => {
    for (const verdict of ['hidden', { excluded: 'no' }] as const) {
      const judge = (entry: Candidate): Verdict => (entry === cheap ? verdict : 'eligible');
      expect(await verdicts([expensive, cheap], { judge })).toEqual(['eligible', verdict]);
    }
    expect(await verdicts([expensive, cheap])).toEqual(['beaten', 'eligible']);
  });
});
