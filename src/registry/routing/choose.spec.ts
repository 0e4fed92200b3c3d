import { candidate, evenFactors } from '../../../test/support/checks/candidates.js';
import { betaSample, chanceOf, choose, type Candidate } from './choose.js';

/** Counts how often each candidate is chosen; all draws share one random sequence. */
function picks(candidates: Candidate[], times: number, chance = chanceOf(20_260_718)): number[] {
  const counts = candidates.map(() => 0);
  for (let time = 0; time < times; time++) counts[choose(candidates, chance).best]!++;
  return counts;
}

describe('the choice among agents', () => {
  it.each([
    ['of 10 calls', 9, 1, 5, 5],
    ['of 100 calls', 90, 10, 50, 50],
  ])('RE-71 90 %% success gets over 80 %% of 1,000 picks against 50 %%, %s', (_what, s1, f1, s2, f2) => {
    const [good, poor] = picks(
      [candidate({ successes: s1, failures: f1 }), candidate({ successes: s2, failures: f2 })],
      1_000,
    );
    expect(good).toBeGreaterThan(800);
    expect(good! + poor!).toBe(1_000);
  });

  it('RE-71 tries an agent without calls sometimes, and two of them equally often', () => {
    const [known, fresh] = picks([candidate({ successes: 8, failures: 2 }), candidate()], 1_000);
    expect(known).toBeGreaterThan(fresh!);
    expect(fresh).toBeGreaterThan(100);
    const [one, other] = picks([candidate(), candidate()], 1_000);
    expect(Math.abs(one! - other!)).toBeLessThan(150);
  });

  it('chooses the other agent when a fit or factor is half as good', () => {
    for (const lesser of [
      { fit: 0.5 },
      ...Object.keys(evenFactors).map((name) => ({ factors: { ...evenFactors, [name]: 0.5 } })),
    ]) {
      const of = { successes: 50, failures: 50 };
      expect(picks([candidate({ ...of, ...lesser }), candidate(of)], 200)[1]).toBe(200);
    }
  });

  it('draws the same numbers for the same seed, and others for another seed', () => {
    const three = [candidate(), candidate({ successes: 3 }), candidate({ failures: 4 })];
    expect(choose(three, chanceOf(7))).toEqual(choose(three, chanceOf(7)));
    expect(choose(three, chanceOf(7))).not.toEqual(choose(three, chanceOf(8)));
  });

  it('chooses no agent from an empty list, and the first of equals', () => {
    expect(choose([], chanceOf(1))).toEqual({ best: -1, drawn: [] });
    const same = () => 0.5;
    expect(choose([candidate(), candidate()], same)).toMatchObject({ best: 0 });
    expect(choose([candidate({ fit: 0.5 }), candidate()], same)).toMatchObject({ best: 1 });
  });

  it.each([
    [1, 1],
    [2, 1],
    [1, 10],
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

  it('stays in [0, 1] for the extreme random numbers', () => {
    const ends = [0, 1 - 2 ** -32, 0, 0.5];
    let next = 0;
    const { sampled } = choose([candidate()], () => ends[next++ % ends.length]!).drawn[0]!;
    expect(sampled >= 0 && sampled <= 1).toBe(true);
  });
});
