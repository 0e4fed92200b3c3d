import { betaSample, chanceOf, choose, type Contender } from './choose.js';

const even = { health: 1, load: 1, cost: 1 };
const contender = (more: Partial<Contender> = {}): Contender => ({
  fit: 1,
  factors: even,
  successes: 0,
  failures: 0,
  cost: 0,
  ...more,
});

/** How often each is chosen of so many times, the chance going on from one to the next. */
function picks(contenders: Contender[], times: number, chance = chanceOf(20_260_718)): number[] {
  const counts = contenders.map(() => 0);
  for (let time = 0; time < times; time++) counts[choose(contenders, chance).best]!++;
  return counts;
}

describe('the choice among agents', () => {
  it.each([
    ['of 10 calls', 9, 1, 5, 5],
    ['of 100 calls', 90, 10, 50, 50],
  ])('RE-71 90 %% success gets over 80 %% of 1,000 picks against 50 %%, %s', (_what, s1, f1, s2, f2) => {
    const [good, poor] = picks(
      [contender({ successes: s1, failures: f1 }), contender({ successes: s2, failures: f2 })],
      1_000,
    );
    expect(good).toBeGreaterThan(800);
    expect(good! + poor!).toBe(1_000);
  });

  it('RE-71 who is unknown is tried now and then, and as often as another unknown', () => {
    const [known, fresh] = picks([contender({ successes: 8, failures: 2 }), contender()], 1_000);
    expect(known).toBeGreaterThan(fresh!);
    expect(fresh).toBeGreaterThan(100);
    const [one, other] = picks([contender(), contender()], 1_000);
    expect(Math.abs(one! - other!)).toBeLessThan(150);
  });

  it('a fit or factor that is half as good loses most of the time', () => {
    for (const lesser of [{ fit: 0.5 }, ...Object.keys(even).map((name) => ({ factors: { ...even, [name]: 0.5 } }))]) {
      const of = { successes: 50, failures: 50 };
      expect(picks([contender({ ...of, ...lesser }), contender(of)], 200)[1]).toBe(200);
    }
  });

  it('the same seed draws the same, another one something else', () => {
    const three = [contender(), contender({ successes: 3 }), contender({ failures: 4 })];
    expect(choose(three, chanceOf(7))).toEqual(choose(three, chanceOf(7)));
    expect(choose(three, chanceOf(7))).not.toEqual(choose(three, chanceOf(8)));
  });

  it('is of nobody among none, and of the first among equals', () => {
    expect(choose([], chanceOf(1))).toEqual({ best: -1, drawn: [] });
    const same = () => 0.5;
    expect(choose([contender(), contender()], same)).toMatchObject({ best: 0 });
    expect(choose([contender({ fit: 0.5 }), contender()], same)).toMatchObject({ best: 1 });
  });

  it.each([
    [1, 1],
    [2, 1],
    [10, 2],
    [901, 101],
    [1e9, 1e9],
  ])('draws from Beta(%d, %d): its mean and its variance, all in [0, 1]', (alpha, beta) => {
    const chance = chanceOf(1);
    const samples = Array.from({ length: 4_000 }, () => betaSample(alpha, beta, chance));
    const mean = samples.reduce((sum, sample) => sum + sample, 0) / samples.length;
    const variance = samples.reduce((sum, sample) => sum + (sample - mean) ** 2, 0) / samples.length;
    const sum = alpha + beta;
    const expected = (alpha * beta) / (sum * sum * (sum + 1));
    expect(Math.abs(mean - alpha / sum)).toBeLessThan(4 * Math.sqrt(expected / samples.length));
    expect(variance / expected).toBeGreaterThan(0.85);
    expect(variance / expected).toBeLessThan(1.15);
    for (const sample of samples) expect(sample >= 0 && sample <= 1).toBe(true);
  });

  it('survives the ends of chance', () => {
    const ends = [0, 1 - 2 ** -32, 0, 0.5];
    let next = 0;
    const { sampled } = choose([contender()], () => ends[next++ % ends.length]!).drawn[0]!;
    expect(sampled >= 0 && sampled <= 1).toBe(true);
  });
});

describe('RE-61 of those who are thrifty', () => {
  const cheap = contender({ cost: 1, successes: 3, failures: 1 });
  const dear = contender({ cost: 2, successes: 3, failures: 1 });
  const isDrawn = (contenders: Contender[]) =>
    choose(contenders, chanceOf(3), { thrifty: true }).drawn.map((lot) => lot !== undefined);

  it('the cheaper of equals is chosen whatever is drawn; without a limit both are drawn for', () => {
    for (let seed = 0; seed < 50; seed++)
      expect(choose([dear, cheap], chanceOf(seed), { thrifty: true })).toMatchObject({
        best: 1,
        drawn: [undefined, {}],
      });
    expect(picks([dear, cheap], 100)[0]).toBeGreaterThan(20);
  });

  it('equals of one price are both drawn for', () => {
    expect(isDrawn([dear, { ...cheap, cost: 2 }])).toEqual([true, true]);
  });

  it.each([
    ['fit', { fit: 0.9 }],
    ['health', { factors: { ...even, health: 0.8 } }],
    ['load', { factors: { ...even, load: 0.5 } }],
    ['success', { failures: 2 }],
  ])('the dearer one is worth its price when the cheaper one is worse in %s', (_what, worse) => {
    expect(isDrawn([dear, { ...cheap, ...worse }])).toEqual([true, true]);
  });
});
