import type { ValidatedBody } from '../../platform/http/validated-answer.js';

/** A card as text ready to send, built once and sent many times. */
export type BuiltCard = Required<ValidatedBody>;

const overhead = 500;

/** Caches built cards. Drops the least recently used cards when the total size exceeds `maxBytes`. */
export class CardCache {
  private readonly cards = new Map<string, BuiltCard>();
  private bytes = 0;
  /** Key of the most recently used card, which is the last one in the map. */
  private newest?: string;

  constructor(private readonly maxBytes = 64 * 1_048_576) {}

  get(key: string): BuiltCard | undefined {
    const card = this.cards.get(key);
    if (card && key !== this.newest) {
      this.cards.delete(key);
      this.cards.set(key, card);
      this.newest = key;
    }
    return card;
  }

  set(key: string, card: BuiltCard): void {
    this.dropCard(key);
    this.cards.set(key, card);
    this.newest = key;
    this.bytes += sizeOf(card);
    for (const oldest of this.cards.keys()) {
      if (this.bytes <= this.maxBytes) break;
      this.dropCard(oldest);
    }
  }

  private dropCard(key: string): void {
    const card = this.cards.get(key);
    if (!card) return;
    this.cards.delete(key);
    this.bytes -= sizeOf(card);
  }
}

function sizeOf({ body }: BuiltCard): number {
  return Buffer.byteLength(body) + overhead;
}
