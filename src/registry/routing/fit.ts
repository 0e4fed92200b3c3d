/** Work to assign to the agent that does it best. */
export interface Wish {
  /** Kind of the work, e.g. `code-review`. */
  readonly workType: string;
  /** Description of the work, for people and for the comparison with the cards of agents. */
  readonly description: string;
  /** Ids, names or tags of skills. An agent without one of them is excluded. */
  readonly requiredSkills: readonly string[];
  /** Maximum price of one task, in the unit of the cards. */
  readonly costLimit?: number;
}

export interface OfferedSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
}

/** The parts of an agent's card that show which work fits it. */
export interface Offer {
  readonly description: string;
  readonly skills: readonly OfferedSkill[];
}

/** `skillId`: the skill that fits the work best; of equal ones the first on the card. */
export type Fit =
  | { readonly ok: true; readonly skillId: string; readonly score: number }
  | { readonly ok: false; readonly missing: readonly string[] };

/** Shares of the score: the agent can do the work; it names the work type; its words match the description. */
const shares = { capable: 0.5, workType: 0.3, description: 0.2 };

/**
 * Stage 1 of the choice: how well an agent fits the work, in [0, 1] (RE-66). An agent without a required skill, or
 * without any skill, does not fit; `missing` names the missing skills.
 */
export function fitOf({ workType, description, requiredSkills }: Wish, offer: Offer): Fit {
  const missing = requiredSkills.filter((term) => !offer.skills.some((skill) => isCalled(skill, term)));
  if (missing.length > 0 || offer.skills.length === 0) return { ok: false, missing };
  const wanted = wordsOf(description);
  const common = wordsOfOffer(offer);
  const ranked = offer.skills.map((skill) => {
    const { words } = readingOf(skill);
    const isKnownFor = isCalled(skill, workType);
    return {
      id: skill.id,
      isKnownFor,
      required: requiredSkills.filter((term) => isCalled(skill, term)).length,
      ofSkill: shareOf(wanted, (word) => words.has(word)),
      all: shareOf(wanted, (word) => words.has(word) || common.has(word)),
    };
  });
  const [best] = ranked.sort(
    (a, b) => b.required - a.required || Number(b.isKnownFor) - Number(a.isKnownFor) || b.ofSkill - a.ofSkill,
  );
  const { id, isKnownFor, all } = best!;
  return {
    ok: true,
    skillId: id,
    score: shares.capable + (isKnownFor ? shares.workType : 0) + shares.description * all,
  };
}

function isCalled(skill: OfferedSkill, term: string): boolean {
  const wanted = plain(term);
  return wanted !== '' && readingOf(skill).names.has(wanted);
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

/** The names of a skill (its id, name and tags), and all its words. */
interface Reading {
  readonly names: ReadonlySet<string>;
  readonly words: ReadonlySet<string>;
}

// Cards are parsed once and compared for each dispatch.
const readings = new WeakMap<OfferedSkill, Reading>();
const offerWords = new WeakMap<Offer, ReadonlySet<string>>();

function readingOf(skill: OfferedSkill): Reading {
  let reading = readings.get(skill);
  if (!reading) {
    const { id, name, description, tags } = skill;
    const words = wordsOf([id, name, description, ...tags].join(' '));
    reading = { names: new Set([id, name, ...tags].map(plain)), words };
    readings.set(skill, reading);
  }
  return reading;
}

function wordsOfOffer(offer: Offer): ReadonlySet<string> {
  let words = offerWords.get(offer);
  if (!words) offerWords.set(offer, (words = wordsOf(offer.description)));
  return words;
}

const stopWords = new Set('and are can for from has how not please that the this was what with you your'.split(' '));

/** Returns the words of a text without stop words: a few English ones, and ASCII words of one or two letters. */
function wordsOf(text: string): ReadonlySet<string> {
  const words = plain(text).split(/[^\p{L}\p{N}]+/u);
  return new Set(words.filter((word) => (word.length > 2 && !stopWords.has(word)) || /\P{ASCII}/u.test(word)));
}
