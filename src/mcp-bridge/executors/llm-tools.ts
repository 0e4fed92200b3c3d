import { Injectable } from '@nestjs/common';
import { parseExact } from '../../protocol/exact-integers.js';
import type { CallContext } from '../../kernel/call-context.js';
import { isJsonObject, storableText, type JsonObject } from '../../kernel/json.js';
import type { ChatCall } from '../../protocol/chat/completion.js';
import type { ChatFunction } from '../../protocol/chat/messages.js';
import { parseJson } from '../../protocol/json-text.js';
import { ToolSet } from '../tools/tool-set.js';
import { wordsOf } from './result-parts.js';
import { asFailure, mayRepeat } from './turn.js';

/** So many functions a model takes at most, and so many characters of each result. */
const maxTools = 128;
const maxResult = 20_000;
const factsKey = 'dev.rialto/tool';

/** A tool as a model knows it. */
export interface LlmTool extends ChatFunction {
  /** Whether it may be called again when nobody knows whether it was called. */
  readonly mayRepeat: boolean;
}

/** The tools that an agent may use for its caller: listed and called as by the caller, who has no more rights through it. */
@Injectable()
export class LlmTools {
  constructor(private readonly tools: ToolSet) {}

  /** By the names that the model uses; the first of them when too many match. */
  async matching(ctx: CallContext, patterns: readonly string[] = []): Promise<Map<string, LlmTool>> {
    const found = new Map<string, LlmTool>();
    if (patterns.length === 0) return found;
    let cursor: string | undefined;
    do {
      const { texts, nextCursor } = await this.tools.list(ctx, { names: 'portable' }, cursor);
      for (const text of texts) {
        const tool = parseExact(text) as JsonObject & { name: string };
        if (found.size < maxTools && namesOf(tool).some((name) => matches(name, patterns)))
          found.set(tool.name, toolOf(tool));
      }
      cursor = nextCursor;
    } while (cursor !== undefined && found.size < maxTools);
    return found;
  }

  /** What a call comes to, in words for the model: also why it failed. Throws what is no failure of the call. */
  async call(ctx: CallContext, { name, arguments: text }: ChatCall): Promise<{ text: string; isError: boolean }> {
    const parsed = text.trim() === '' ? { ok: true as const, value: {} } : parseJson(text);
    if (!parsed.ok || !isJsonObject(parsed.value))
      return { text: 'Error: the arguments are no JSON object', isError: true };
    try {
      const result = (await this.tools.call(ctx, { name, args: parsed.value })) as JsonObject;
      return { text: resultText(result), isError: result.isError === true };
    } catch (thrown) {
      const error = asFailure(thrown);
      if (ctx.signal?.aborted || error.code === 'unavailable' || error.code === 'internal') throw error;
      return { text: storableText(`Error: ${error.message}`, maxResult), isError: true };
    }
  }
}

/** Whether a name is one of those, or fits one with `*` in it. */
export function matches(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => {
    const [first = '', ...rest] = pattern.split('*');
    const last = rest.pop();
    if (last === undefined) return name === pattern;
    if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false;
    let from = first.length;
    const until = name.length - last.length;
    return rest.every((piece) => {
      const at = name.indexOf(piece, from);
      from = at + piece.length;
      return at >= 0 && from <= until;
    });
  });
}

/** A result in words: its texts, else its data. What is too long is cut. Pure. */
export function resultText(result: JsonObject): string {
  const { structuredContent, content, isError } = result;
  const others = Array.isArray(content) ? content.filter((block) => isJsonObject(block) && block.type !== 'text') : [];
  const data = structuredContent === undefined ? '' : JSON.stringify(structuredContent);
  const kinds = others.map((block) => `[${String((block as JsonObject).type as string)}]`).join(' ');
  const text = [wordsOf(result) || data, kinds].filter(Boolean).join('\n') || 'done';
  return storableText(isError === true ? `Error: ${text}` : text, maxResult);
}

function toolOf({ name, description, inputSchema, ...more }: JsonObject & { name: string }): LlmTool {
  return {
    name,
    description: typeof description === 'string' ? description : name,
    parameters: isJsonObject(inputSchema) ? inputSchema : { type: 'object' },
    mayRepeat: mayRepeat(more),
  };
}

function namesOf({ name, _meta }: JsonObject & { name: string }): string[] {
  const facts = isJsonObject(_meta) && isJsonObject(_meta[factsKey]) ? _meta[factsKey] : {};
  return typeof facts.canonicalName === 'string' ? [name, facts.canonicalName] : [name];
}
