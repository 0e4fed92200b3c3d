import { BoundedMap } from '../../kernel/bounded-map.js';
import { inTurns } from '../../platform/jobs/in-turns.js';

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

/** Most tags of a skill, and characters of a description, that are compared: more are no help to choose an agent. */
const [maxTags, maxText] = [200, 20_000];

/** A skill or an offer by the position in its index. */
type Position = number;

/**
 * Stage 1 of the choice: compares a wish with the cards of many agents (RE-66). The terms of all cards are in one
 * index, so that a comparison reads only the cards that share a term with the wish.
 */
export class OfferIndex {
  /** Skills by their ids, names and tags. */
  private readonly named = new Postings();
  private readonly skillWords = new Postings();
  /** Offers by the words of their descriptions. */
  private readonly offerWords = new Postings();
  private readonly skillIds: string[] = [];
  private readonly offerOf: Position[] = [];

  private constructor(private readonly offers: readonly Offer[]) {}

  /** Builds the index of offers. Yields after each skill, because a card may have a megabyte of words. Pure. */
  static *building(offers: readonly Offer[]): Generator<void, OfferIndex> {
    const index = new OfferIndex(offers);
    for (const [position, offer] of offers.entries()) {
      index.add(terms.get(offer) ?? (yield* readingTerms(offer)), position);
      yield;
    }
    return index;
  }

  private add({ words, skills }: Terms, offer: Position): void {
    this.offerWords.add(words, offer);
    for (const { id, names, words: ofSkill } of skills) {
      const skill = this.skillIds.push(id) - 1;
      this.offerOf.push(offer);
      this.named.add(names, skill);
      this.skillWords.add(ofSkill, skill);
    }
  }

  /** Returns whether the index is of exactly these offers. */
  covers(offers: readonly Offer[]): boolean {
    return offers.length === this.offers.length && offers.every((offer, index) => offer === this.offers[index]);
  }

  /**
   * Returns how well each agent fits the work, in [0, 1]. An agent without a required skill, or without any skill, does
   * not fit; `missing` names the missing skills.
   */
  fitsOf({ workType, description, requiredSkills }: Wish): Fit[] {
    const words = wordsOf(description);
    // The best skill of an offer has most of the required terms, then the work type, then most of the words.
    const rankOfWorkType = words.size + 1;
    const ranks = new Float64Array(this.skillIds.length);
    const offersWith = requiredSkills.map((term) => {
      const skills = this.named.with(plain(term));
      for (const skill of skills) ranks[skill]! += 2 * rankOfWorkType;
      return new Set(skills.map((skill) => this.offerOf[skill]!));
    });
    const known = this.named.with(plain(workType));
    for (const skill of known) ranks[skill]! += rankOfWorkType;
    for (const word of words) for (const skill of this.skillWords.with(word)) ranks[skill]! += 1;

    const best = new Int32Array(this.offers.length).fill(-1);
    for (const [skill, offer] of this.offerOf.entries()) {
      const leader = best[offer]!;
      if (leader < 0 || ranks[skill]! > ranks[leader]!) best[offer] = skill;
    }
    const found = this.countWords(words, best);
    const isKnown = new Set(known);
    return this.offers.map((_, offer): Fit => {
      const missing = requiredSkills.filter((_term, index) => !offersWith[index]!.has(offer));
      const skill = best[offer]!;
      if (missing.length > 0 || skill < 0) return { ok: false, missing };
      const score =
        shares.capable +
        (isKnown.has(skill) ? shares.workType : 0) +
        shares.description * (words.size === 0 ? 0 : found[offer]! / words.size);
      return { ok: true, skillId: this.skillIds[skill]!, score };
    });
  }

  /** Counts the words that each offer or its best skill has. */
  private countWords(words: ReadonlySet<string>, best: Int32Array): Uint32Array {
    const found = new Uint32Array(best.length);
    for (const word of words) {
      const offers = new Set(this.offerWords.with(word));
      for (const skill of this.skillWords.with(word)) {
        const offer = this.offerOf[skill]!;
        if (best[offer] === skill) offers.add(offer);
      }
      for (const offer of offers) found[offer]! += 1;
    }
    return found;
  }
}

/** Keeps the index of each org while the cards of its agents stay the same. An index of one card is not worth it. */
export class OfferIndexes {
  private readonly indexes = new BoundedMap<string, OfferIndex>(500);

  async of(org: string, offers: readonly Offer[]): Promise<OfferIndex> {
    const known = this.indexes.use(org);
    if (known?.covers(offers)) return known;
    const index = await inTurns(OfferIndex.building(offers));
    if (offers.length > 1) this.indexes.set(org, index);
    return index;
  }
}

/** The positions at which each term occurs. */
class Postings {
  private readonly byTerm = new Map<string, Position[]>();

  add(terms: ReadonlySet<string>, position: Position): void {
    for (const term of terms) {
      const positions = this.byTerm.get(term);
      if (positions) positions.push(position);
      else this.byTerm.set(term, [position]);
    }
  }

  with(term: string): readonly Position[] {
    return this.byTerm.get(term) ?? [];
  }
}

interface Terms {
  readonly words: ReadonlySet<string>;
  readonly skills: readonly {
    readonly id: string;
    readonly names: ReadonlySet<string>;
    readonly words: ReadonlySet<string>;
  }[];
}

// A change of one card makes a new index of all.
const terms = new WeakMap<Offer, Terms>();

function* readingTerms(offer: Offer): Generator<void, Terms> {
  const skills: Terms['skills'][number][] = [];
  for (const { id, name, description, tags } of offer.skills) {
    const names = [id, name, ...tags.slice(0, maxTags)];
    const words = wordsOf([...names, description.slice(0, maxText)].join(' '));
    skills.push({ id, names: new Set(names.map(plain).filter((term) => term !== '')), words });
    yield;
  }
  const known = { words: wordsOf(offer.description.slice(0, maxText)), skills };
  terms.set(offer, known);
  return known;
}

function plain(text: string): string {
  return text.normalize('NFKC').trim().toLowerCase();
}

const stopWords = new Set('and are can for from has how not please that the this was what with you your'.split(' '));

/** Returns the words of a text without stop words: a few English ones, and ASCII words of one or two letters. */
function wordsOf(text: string): ReadonlySet<string> {
  const words = plain(text).split(/[^\p{L}\p{N}]+/u);
  return new Set(words.filter((word) => (word.length > 2 && !stopWords.has(word)) || /\P{ASCII}/u.test(word)));
}
