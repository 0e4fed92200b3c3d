/** A page of tools: their prebuilt JSON texts, and where the next page begins when there is one. */
export interface ToolPage {
  readonly texts: readonly string[];
  readonly nextCursor?: string;
}

/** The last tool of a page: its canonical name, and which of its names it was listed by. */
export type ToolPosition = readonly [canonical: string, index: string];

const maxTools = 1_000;
const maxLength = 1_048_576;

/** Fills one page: 1,000 tools or about 1 MiB of text, and one tool at least, however long it is. */
export class ToolPageFiller {
  readonly texts: string[] = [];
  last: ToolPosition | undefined;
  private length = 0;

  /** False when the page is full and the tool begins the next one. */
  add(text: string, position: ToolPosition): boolean {
    if (this.texts.length === maxTools) return false;
    if (this.texts.length > 0 && this.length + text.length > maxLength) return false;
    this.texts.push(text);
    this.length += text.length;
    this.last = position;
    return true;
  }
}

/** The JSON text of a `tools/list` result (MCP, pagination). */
export function pageText({ texts, nextCursor }: ToolPage): string {
  const next = nextCursor === undefined ? '' : `,"nextCursor":${JSON.stringify(nextCursor)}`;
  return `{"tools":[${texts.join(',')}]${next}}`;
}
