import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import type { Act } from '../../kernel/verb-bus.js';
import { Cursors } from '../../platform/http/cursor.js';
import { asksFirst, questionsOf } from '../client-requests/client-requests.js';

/** Questions with more characters stay with the client; an approver then sees the answers alone. */
const maxCharacters = 16_384;

/**
 * Carries the questions of a server in the `requestState` that the client sends back with its answers (MCP 2026-07-28,
 * multi round-trip requests), so that a person who approves the answers reads the questions too.
 */
@Injectable()
export class AskedQuestions {
  constructor(private readonly cursors: Cursors) {}

  /** Adds the questions of a result to its state, when the call needed an approval. Returns other results unchanged. */
  addTo(result: JsonObject, { ctx, verb, decision }: Act): JsonObject {
    if (!decision?.approval || !asksFirst(result)) return result;
    const questions = JSON.stringify(Object.fromEntries(questionsOf(result).map(([name, one]) => [name, textOf(one)])));
    if (questions.length > maxCharacters) return result;
    const state = JSON.stringify(result.requestState ?? null);
    return { ...result, requestState: this.cursors.encode(scopeOf(ctx, verb), [questions, state]) };
  }

  /** Returns the context of a call with the questions and the server's state that `addTo` put into its state. */
  readFrom(ctx: CallContext, verb: string): CallContext {
    const { peer } = ctx;
    const read = this.read(scopeOf(ctx, verb), peer?.answers?.requestState);
    if (!peer || !read) return ctx;
    const { requestState: _, ...answers } = peer.answers!;
    const { questions, state } = read;
    return {
      ...ctx,
      peer: { ...peer, questions, answers: { ...answers, ...(state !== null && { requestState: state }) } },
    };
  }

  private read(scope: string, state: unknown): { questions: JsonObject; state: Json } | undefined {
    if (typeof state !== 'string') return undefined;
    try {
      const [questions, inner] = this.cursors.decode(scope, state, 2);
      return { questions: JSON.parse(questions!) as JsonObject, state: JSON.parse(inner!) as Json };
    } catch {
      return undefined;
    }
  }
}

/** Returns the text of a question as a person reads it: with the address of a page to visit, if any. */
function textOf({ method, params: { message, url } = {} }: { method: string; params?: JsonObject }): string {
  return [message, url].filter((one) => typeof one === 'string').join(' ') || method;
}

/** Binds a state to its caller and its tool. */
function scopeOf({ org, principal }: CallContext, verb: string): string {
  return `mcp-asked ${org.id} ${callerOf(principal)} ${verb}`;
}
