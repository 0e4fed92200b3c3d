import { Injectable } from '@nestjs/common';
import { parseExact } from '../../protocol/exact-integers.js';
import type { CallContext } from '../../kernel/call-context.js';
import { matches } from '../../protocol/name-pattern.js';
import { isJsonObject, storableText, type JsonObject } from '../../kernel/json.js';
import type { ChatCall } from '../../protocol/chat/completion.js';
import type { ChatFunction } from '../../protocol/chat/messages.js';
import { parseJson } from '../../protocol/json-text.js';
import { ToolLists } from '../tools/tool-lists.js';
import { ToolRouter } from '../tools/tool-router.js';
import { textOfResult } from './result-parts.js';
import { asFailure, mayRepeat } from './unknown-outcome.js';

/** Largest number of functions for a model, and largest number of characters of each tool result. */
const maxTools = 128;
const maxResult = 20_000;
const factsKey = 'dev.rialto/tool';

/** A tool as it is offered to a model. */
export interface LlmTool extends ChatFunction {
  /** True when the tool may be called again after a call with an unknown outcome. */
  readonly mayRepeat: boolean;
}

/**
 * The tools that an agent may use for its caller. They are listed and called with the caller's rights, so the agent
 * gives the caller no additional rights.
 */
@Injectable()
export class LlmTools {
  constructor(
    private readonly lists: ToolLists,
    private readonly router: ToolRouter,
  ) {}

  /**
   * Returns the tools that match the patterns, by the names that the model uses; only the first ones when too many
   * match.
   */
  async matching(ctx: CallContext, patterns: readonly string[] = []): Promise<Map<string, LlmTool>> {
    const found = new Map<string, LlmTool>();
    if (patterns.length === 0) return found;
    let cursor: string | undefined;
    do {
      const { texts, nextCursor } = await this.lists.listTools(ctx, { names: 'portable' }, cursor);
      for (const text of texts) {
        const tool = parseExact(text) as JsonObject & { name: string };
        if (found.size < maxTools && namesOf(tool).some((name) => matches(name, patterns)))
          found.set(tool.name, toolOf(tool));
      }
      cursor = nextCursor;
    } while (cursor !== undefined && found.size < maxTools);
    return found;
  }

  /**
   * Calls a tool and returns its result, or the reason for its failure, as text for the model. Throws errors that are
   * not failures of the call.
   */
  async callTool(ctx: CallContext, { name, arguments: text }: ChatCall): Promise<{ text: string; isError: boolean }> {
    const parsed = text.trim() === '' ? { ok: true as const, value: {} } : parseJson(text);
    if (!parsed.ok || !isJsonObject(parsed.value))
      return { text: 'Error: the arguments are not a JSON object', isError: true };
    try {
      const outcome = await this.router.callTool(ctx, { name, args: parsed.value });
      const result = outcome.result as JsonObject;
      return { text: resultText(result), isError: result.isError === true };
    } catch (thrown) {
      const error = asFailure(thrown);
      if (ctx.signal?.aborted || error.code === 'unavailable' || error.code === 'internal') throw error;
      return { text: storableText(`Error: ${error.message}`, maxResult), isError: true };
    }
  }
}

/** Returns a result as text: its texts, else its data, cut to the limit. Pure. */
export function resultText(result: JsonObject): string {
  const { structuredContent, content, isError } = result;
  const others = Array.isArray(content) ? content.filter((block) => isJsonObject(block) && block.type !== 'text') : [];
  const data = structuredContent === undefined ? '' : JSON.stringify(structuredContent);
  const kinds = others.map((block) => `[${String((block as JsonObject).type as string)}]`).join(' ');
  const text = [textOfResult(result) || data, kinds].filter(Boolean).join('\n') || 'done';
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
