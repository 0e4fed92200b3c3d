import { chanceOf } from './choose.js';
import { atOnce } from '../../platform/jobs/in-turns.js';
import { OfferIndex, OfferIndexes, type Fit, type Offer, type Wish } from './fit.js';

const wish = (more: Partial<Wish> = {}): Wish => ({ workType: 'review', description: '', requiredSkills: [], ...more });
const skill = (id: string, tags: string[] = [], description = '') => ({ id, name: id, description, tags });
const indexOf = (offers: readonly Offer[]): OfferIndex => atOnce(OfferIndex.building(offers));
const fitOf = (wanted: Wish, one: Offer): Fit => indexOf([one]).fitsOf(wanted)[0]!;
const offer = (...skills: Offer['skills'][number][]): Offer => ({ description: '', skills });

/** Six cards, from the best fit to those without a fit. */
const cards: Record<string, Offer> = {
  'describes all of the work': offer(skill('check', ['review', 'typescript'], 'Reviews pull requests for mistakes')),
  'describes half of the work': offer(skill('check', ['review', 'typescript'], 'Looks for mistakes')),
  'names the work type': offer(skill('check', ['Review', 'typescript'])),
  'has only the skill': offer(skill('typescript')),
  'lacks the skill': offer(skill('check', ['review', 'python'], 'Reviews pull requests for mistakes')),
  'has no skill': offer(),
};

describe('RE-66 the fit of an agent', () => {
  const wanted = wish({ requiredSkills: ['typescript'], description: 'Reviews requests, mistakes, leaks' });

  it.each([
    ['describes all of the work', { ok: true, skillId: 'check', score: 0.95 }],
    ['describes half of the work', { ok: true, skillId: 'check', score: 0.85 }],
    ['names the work type', { ok: true, skillId: 'check', score: 0.8 }],
    ['has only the skill', { ok: true, skillId: 'typescript', score: 0.5 }],
    ['lacks the skill', { ok: false, missing: ['typescript'] }],
    ['has no skill', { ok: false, missing: ['typescript'] }],
  ])('scores a card that %s', (name, expected) => {
    const fit = fitOf(wanted, cards[name]!);
    expect(fit.ok ? { ...fit, score: Math.round(fit.score * 100) / 100 } : fit).toEqual(expected);
  });

  it('finds a skill by its whole id, name or tag, in any case, and not by a part of one', () => {
    const one = offer({ id: 'ts-1', name: 'Type Script', description: 'typescript', tags: ['Lang'] });
    for (const term of ['TS-1', ' type script ', 'lang'])
      expect(fitOf(wish({ requiredSkills: [term] }), one).ok).toBe(true);
    for (const term of ['typescript', 'ts', '', ' '])
      expect(fitOf(wish({ requiredSkills: [term] }), one)).toEqual({ ok: false, missing: [term] });
  });

  it('names every missing skill, and searches all skills of the card', () => {
    const two = offer(skill('a'), skill('b'));
    expect(fitOf(wish({ requiredSkills: ['a', 'b'] }), two).ok).toBe(true);
    expect(fitOf(wish({ requiredSkills: ['a', 'c', 'b', 'd'] }), two)).toEqual({ ok: false, missing: ['c', 'd'] });
  });

  it('takes the required skill, then one of the work type, then one that describes the work, then the first', () => {
    const many = offer(skill('first'), skill('second', [], 'translates letters'), skill('third', ['review']));
    const taken = (more: Partial<Wish>) => {
      const fit = fitOf(wish({ workType: 'x', ...more }), many);
      return fit.ok && fit.skillId;
    };
    expect(taken({})).toBe('first');
    expect(taken({ description: 'letters' })).toBe('second');
    expect(taken({ description: 'letters', workType: 'review' })).toBe('third');
    expect(taken({ description: 'letters', workType: 'review', requiredSkills: ['first'] })).toBe('first');
  });

  it('counts the description of the agent like those of its skills', () => {
    const described = { ...offer(skill('chat')), description: 'Translates letters' };
    const score = (of: Offer) => {
      const fit = fitOf(wish({ description: 'letters' }), of);
      return fit.ok ? fit.score : 0;
    };
    expect(score(described)).toBeGreaterThan(score(offer(skill('chat'))));
  });

  it('ignores stop words', () => {
    const wordy = offer(skill('chat', [], 'What the agent can do for you, and how'));
    const fit = fitOf(wish({ description: 'Can you do this for the team, and how?' }), wordy);
    expect(fit).toEqual({ ok: true, skillId: 'chat', score: 0.5 });
  });

  it('is in [0, 1] for any work and any card', () => {
    const chance = chanceOf(4_711);
    const words = ['review', 'TypeScript', 'die', '日本語', 'a', '', '…', 'mistakes', '__proto__', 'constructor'];
    const some = () => words.filter(() => chance() < 0.4);
    let fits = 0;
    for (let round = 0; round < 2_000; round++) {
      const skills = some().map((id) => skill(id, some(), some().join(' ')));
      const asked = wish({
        workType: some()[0] ?? '',
        description: some().join(' '),
        requiredSkills: some().slice(0, 2),
      });
      const fit = fitOf(asked, { description: some().join(' '), skills });
      if (!fit.ok) continue;
      fits++;
      expect(fit.score).toBeGreaterThanOrEqual(0);
      expect(fit.score).toBeLessThanOrEqual(1);
      expect(skills.map(({ id }) => id)).toContain(fit.skillId);
    }
    expect(fits).toBeGreaterThan(200);
  });
});

describe('an index of many cards', () => {
  it('fits each card as an index of it alone does', () => {
    const all = Object.values(cards);
    for (const requiredSkills of [[], ['typescript'], ['check', 'python'], ['none']]) {
      const wanted = wish({ requiredSkills, description: 'Reviews requests, mistakes, leaks' });
      expect(indexOf(all).fitsOf(wanted)).toEqual(all.map((one) => fitOf(wanted, one)));
    }
  });

  it('is kept for each org while its cards are the same', async () => {
    const indexes = new OfferIndexes();
    const [one, two] = [offer(skill('a')), offer(skill('b'))];
    const index = await indexes.of('org', [one, two]);
    expect(await indexes.of('other', [two])).not.toBe(index);
    await indexes.of('org', [one]);
    expect(await indexes.of('org', [one, two])).toBe(index);
    expect(await indexes.of('org', [one, { ...two }])).not.toBe(index);
  });
});
