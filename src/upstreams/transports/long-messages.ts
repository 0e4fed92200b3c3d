import { randomUUID } from 'node:crypto';
import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/client';
import { newId } from '../../kernel/ids.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { faultOfAnswer, idOfUnread, refusal, tooLongReason, webLimits } from './answer-reader.js';
import { CredentialRemover } from '../../platform/secrets/credential-remover.js';
import { inTurns, parseLongJson } from '../../platform/turns.js';
import { restoring } from '../../protocol/exact-integers.js';

/** Key of the member that names the message that another one replaces. */
const insteadKey = 'dev.rialto/instead';
/** Limit for the messages that wait. The SDK reads an event at once, so only those of canceled calls are left over. */
const maxKept = 16;
/** Text that the SDK gets for a text that is not a message; it reports it like any other invalid text. */
const noMessage = '{}';

/**
 * Long messages of one connection. The SDK parses events at once, so it gets a short message instead of a long one,
 * which is parsed in turns here and exchanged again before any handler receives it.
 */
export class LongMessages {
  private readonly kept = new Map<string, JSONRPCMessage>();
  /** Begins all keys, so that a server cannot know one. */
  private readonly mark = randomUUID();

  /** @param remover removes the credentials of the connection from each message. */
  constructor(private readonly remover = new CredentialRemover([])) {}

  /** Returns the text of a short message instead of a long one. */
  async shorten(text: string): Promise<string> {
    const parsed = await parseLongJson(text, webLimits(text));
    return this.textOf(parsed.ok ? await inTurns(this.remover.cleaning(parsed.value)) : refusalOf(text, parsed.reason));
  }

  /** Returns the text of a short message instead of one above the size limit, of which only both ends are known. */
  refuseTooLong(ends: string): string {
    return this.textOf(refusalOf(ends, tooLongReason));
  }

  private textOf(message: Json | undefined): string {
    if (!isJsonObject(message) || !isMessage(message)) return noMessage;
    this.forgetOld();
    return JSON.stringify(this.keep(message));
  }

  /**
   * Returns short messages instead of a long one or a batch of them, for a parsed text. Other values stay unchanged:
   * the SDK reports them.
   */
  *shortening(value: Json): Generator<void, Json> {
    const exact = yield* this.remover.cleaning(yield* restoring(value));
    const short = (item: Json): Json => (isJsonObject(item) && isMessage(item) ? this.keep(item) : item);
    this.forgetOld();
    return Array.isArray(exact) ? exact.map(short) : short(exact);
  }

  private keep(message: JsonObject): JsonObject {
    const key = `${this.mark} ${newId()}`;
    this.kept.set(key, message as unknown as JSONRPCMessage);
    const { jsonrpc, id, method } = message;
    const content = { [insteadKey]: key };
    return {
      jsonrpc: jsonrpc!,
      ...(id !== undefined && { id }),
      ...(method === undefined ? { result: content } : { method, params: content }),
    };
  }

  private forgetOld(): void {
    for (const key of this.kept.keys()) {
      if (this.kept.size < maxKept) return;
      this.kept.delete(key);
    }
  }

  /** Returns the long message that a message replaces; most messages replace none. */
  original(message: JSONRPCMessage): JSONRPCMessage {
    const { id, result, params } = message as { id?: RequestId; result?: JsonObject; params?: JsonObject };
    const key = (result ?? params)?.[insteadKey];
    if (typeof key !== 'string' || !key.startsWith(this.mark)) return message;
    const kept = this.kept.get(key);
    this.kept.delete(key);
    return kept ?? refusal(id ?? 0, 'too many long messages at once');
  }
}

/** True for a message that the SDK accepts: it keeps an eye on the envelope only. */
function isMessage(message: JsonObject): boolean {
  const { jsonrpc, id, method } = message;
  const hasId = typeof id === 'string' || Number.isSafeInteger(id);
  if (jsonrpc !== '2.0' || (id !== undefined && !hasId)) return false;
  return typeof method === 'string' || (hasId && faultOfAnswer(message) === undefined);
}

function refusalOf(text: string, reason: string): Json | undefined {
  const id = idOfUnread(text);
  return id === undefined ? undefined : (refusal(id, reason) as unknown as Json);
}
