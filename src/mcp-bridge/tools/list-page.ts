/** A page of a list: its JSON texts, and the cursor of the next page when there is one. */
export interface Page {
  readonly texts: readonly string[];
  readonly nextCursor?: string;
}

/** Position of the last item of a page: its name, and for a tool the index of the listed name. */
export type Position = readonly [name: string, index?: string];

const maxItems = 1_000;
const maxLength = 1_048_576;

/** Fills one page: up to 1,000 items or about 1 MiB of text, and at least one item of any length. */
export class PageFiller {
  readonly texts: string[] = [];
  last: Position | undefined;
  private length = 0;

  /** Adds an item. Returns false when the page is full and the item starts the next one. */
  add(text: string, position: Position): boolean {
    if (this.texts.length === maxItems) return false;
    if (this.texts.length > 0 && this.length + text.length > maxLength) return false;
    this.texts.push(text);
    this.length += text.length;
    this.last = position;
    return true;
  }
}
