import { chanceOf, choose, type Contender } from './choose.js';
import { Contest, takeFirst, type Verdict } from './contest.js';

const even = { health: 1, load: 1, cost: 1 };
const contender = (more: Partial<Contender> = {}): Contender => ({
  fit: 1,
  factors: even,
  successes: 0,
  failures: 0,
  cost: 0,
  ...more,
});

/** A contest with a record of the contenders that were judged. By default each is eligible. */
function contestOf(
  entries: readonly Contender[],
  { seed = 3, prefersCheaper = false, judge = (): Verdict => 'eligible' as const }: ContestOptions = {},
) {
  const judged: Contender[] = [];
  const asked = (entry: Contender): Promise<Verdict> => {
    judged.push(entry);
    return Promise.resolve(judge(entry));
  };
  const contest = new Contest(entries, asked, { chance: chanceOf(seed), prefersCheaper });
  const first = (most: number) =>
    takeFirst(contest.ranked, most, async ({ entry }) =>
      (await contest.verdictOf(entry)) === 'eligible' ? entry : undefined,
    );
  return { contest, judged, first };
}

interface ContestOptions {
  readonly seed?: number;
  readonly prefersCheaper?: boolean;
  readonly judge?: (entry: Contender) => Verdict;
}

describe('a contest', () => {
  const many = Array.from({ length: 1_000 }, () => contender());

  it('judges one of 1,000 contenders when the best one is eligible: the one that a choice takes', async () => {
    const { judged, first } = contestOf(many);
    const [best] = await first(1);
    expect(judged).toEqual([best]);
    expect(best).toBe(many[choose(many, chanceOf(3)).best]);
  });

  it('judges the next one while the best is hidden or excluded, each once', async () => {
    const { contest } = contestOf(many);
    const [one, two, three] = contest.ranked.map(({ entry }) => entry);
    const judge = (entry: Contender): Verdict =>
      entry === one ? 'hidden' : entry === two ? { excluded: 'no' } : 'eligible';
    const second = contestOf(many, { judge });
    expect(await second.first(1)).toEqual([three]);
    expect(await second.first(1)).toEqual([three]);
    expect(second.judged).toEqual([one, two, three]);
  });

  it('judges no more than are wanted, and finds all when more are wanted than exist', async () => {
    const { judged, first } = contestOf(many);
    expect(await first(20)).toHaveLength(20);
    expect(judged).toHaveLength(20);
    expect(await first(2_000)).toHaveLength(1_000);
  });

  it('has ranks that do not depend on verdicts, and keeps the order of equal ones', () => {
    const three = [contender(), contender({ successes: 3 }), contender({ failures: 4 })];
    const excluding = contestOf(three, { judge: () => ({ excluded: 'no' }) });
    expect(excluding.contest.ranked).toEqual(contestOf(three).contest.ranked);
    const zero = [contender({ fit: 0 }), contender({ fit: 0 })];
    expect(contestOf(zero).contest.ranked.map(({ entry }) => entry)).toEqual(zero);
  });
});

describe('RE-61 with prefersCheaper', () => {
  const cheap = contender({ cost: 1, successes: 3, failures: 1 });
  const expensive = contender({ cost: 2, successes: 3, failures: 1 });
  const verdicts = async (entries: readonly Contender[], options: ContestOptions = {}) => {
    const { contest } = contestOf(entries, { prefersCheaper: true, ...options });
    return Promise.all(entries.map((entry) => contest.verdictOf(entry)));
  };

  it('chooses the cheaper of two equal agents for every seed; without it, draws for both', async () => {
    const picked = new Set<number | undefined>();
    for (let seed = 0; seed < 50; seed++) {
      const both = [expensive, cheap];
      expect(await contestOf(both, { seed, prefersCheaper: true }).first(2)).toEqual([cheap]);
      picked.add((await contestOf(both, { seed }).first(1))[0]?.cost);
    }
    expect(picked).toEqual(new Set([1, 2]));
  });

  it('keeps both of two equal agents with the same price', async () => {
    expect(await verdicts([expensive, { ...cheap, cost: 2 }])).toEqual(['eligible', 'eligible']);
  });

  it.each([
    ['fit', { fit: 0.9 }],
    ['health', { factors: { ...even, health: 0.8 } }],
    ['load', { factors: { ...even, load: 0.5 } }],
    ['success', { failures: 2 }],
  ])('keeps the more expensive agent when the cheaper one is worse in %s', async (_what, worse) => {
    expect(await verdicts([expensive, { ...cheap, ...worse }])).toEqual(['eligible', 'eligible']);
  });

  it('keeps the more expensive agent when the cheaper one is not eligible', async () => {
    for (const verdict of ['hidden', { excluded: 'no' }] as const) {
      const judge = (entry: Contender): Verdict => (entry === cheap ? verdict : 'eligible');
      expect(await verdicts([expensive, cheap], { judge })).toEqual(['eligible', verdict]);
    }
    expect(await verdicts([expensive, cheap])).toEqual(['beaten', 'eligible']);
  });
});
