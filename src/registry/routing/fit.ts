/** Work that somebody wants done by whoever does it best. */
export interface Wish {
  /** What kind of work it is, e.g. `code-review`. */
  readonly workType: string;
  /** What is to be done, for people and for the comparison with what agents say of themselves. */
  readonly description: string;
  /** Ids, names or tags of skills; an agent that lacks one is out of the question. */
  readonly requiredSkills: readonly string[];
  /** The most that one task may cost, in the unit of the cards. */
  readonly costLimit?: number;
}

export interface OfferedSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
}

/** What an agent says of itself, as far as it tells what work suits it. */
export interface Offer {
  readonly description: string;
  readonly skills: readonly OfferedSkill[];
}

/** `skillId`: the skill that suits the work best, the first of the card among equals. */
export type Fit =
  | { readonly ok: true; readonly skillId: string; readonly score: number }
  | { readonly ok: false; readonly missing: readonly string[] };

/** An agent that can do the work at all; that it is known for the kind of work; that its words are those of the description. */
const shares = { able: 0.5, workType: 0.3, description: 0.2 };

/**
 * Stage 1 of the choice: how well an agent suits the work, in [0, 1] (RE-66). One that lacks a required skill, or has none at all, does
 * not suit it; `missing` names what it lacks.
 */
export function fitOf({ workType, description, requiredSkills }: Wish, offer: Offer): Fit {
  const missing = requiredSkills.filter((term) => !offer.skills.some((skill) => isCalled(skill, term)));
  if (missing.length > 0 || offer.skills.length === 0) return { ok: false, missing };
  const wanted = wordsOf(description);
  const common = wordsOf(offer.description);
  const ranked = offer.skills.map((skill) => {
    const own = skillWords(skill);
    const isKnownFor = isCalled(skill, workType);
    return {
      id: skill.id,
      isKnownFor,
      required: requiredSkills.filter((term) => isCalled(skill, term)).length,
      own: shareOf(wanted, (word) => own.has(word)),
      all: shareOf(wanted, (word) => own.has(word) || common.has(word)),
    };
  });
  const [best] = ranked.sort(
    (a, b) => b.required - a.required || Number(b.isKnownFor) - Number(a.isKnownFor) || b.own - a.own,
  );
  const { id, isKnownFor, all } = best!;
  return {
    ok: true,
    skillId: id,
    score: shares.able + (isKnownFor ? shares.workType : 0) + shares.description * all,
  };
}

function isCalled({ id, name, tags }: OfferedSkill, term: string): boolean {
  const wanted = plain(term);
  return wanted !== '' && [id, name, ...tags].some((word) => plain(word) === wanted);
}

function plain(text: string): string {
  return text.normalize('NFKC').trim().toLowerCase();
}

function shareOf(words: ReadonlySet<string>, isFound: (word: string) => boolean): number {
  if (words.size === 0) return 0;
  let found = 0;
  for (const word of words) if (isFound(word)) found++;
  return found / words.size;
}

// Cards are read once and asked about for each dispatch.
const known = new WeakMap<OfferedSkill, ReadonlySet<string>>();

function skillWords(skill: OfferedSkill): ReadonlySet<string> {
  let words = known.get(skill);
  if (!words) {
    words = wordsOf([skill.id, skill.name, skill.description, ...skill.tags].join(' '));
    known.set(skill, words);
  }
  return words;
}

const binding = new Set('and are can for from has how not please that the this was what with you your'.split(' '));

/** Words that bind others say nothing: a few of English, and what is shorter than three letters in the Latin scripts. */
function wordsOf(text: string): ReadonlySet<string> {
  const words = plain(text).split(/[^\p{L}\p{N}]+/u);
  return new Set(words.filter((word) => (word.length > 2 && !binding.has(word)) || /\P{ASCII}/u.test(word)));
}
