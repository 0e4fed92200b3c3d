import type { JsonObject } from '../../kernel/json.js';
import type { NormalisedCard } from '../../protocol/a2a/card/card.js';
import type { Message } from '../../protocol/a2a/model.js';

/** A card in one shape, whatever version wrote it, and as it was sent. */
export type FoundCard = NormalisedCard & { readonly raw: JsonObject };

/** How the client proves itself and what it may reach. Nothing is read from the environment. */
export interface A2AClientOptions {
  /** A static bearer key. Tried before the token when both are given; the other one is tried on 401 and 403. */
  apiKey?: string;
  /** A shared secret (A2A_SECRET of the agent's deployment): signs a token of 15 minutes per request, HS256. Needs `userEmail`. */
  secret?: string;
  /** `sub` of the token. */
  userEmail?: string;
  /** `org_domain` of the token: the slug of the org to act in. */
  orgDomain?: string;
  /** `iss` of the token; `rialto` by default. */
  issuer?: string;
  /** `aud` of the token; `rialto` by default. */
  audience?: string;
  /** Private hosts, CIDRs or origins that may be called, comma separated: `127.0.0.0/8, agent.internal`. None by default. */
  allow?: string;
  /** Allows plain http to public hosts; those in `allow` may use it anyway. */
  allowHttp?: boolean;
  /** Deadline of one call that does not say, 60,000 ms by default. */
  timeoutMs?: number;
}

/** A text, or a message of your own (v1.0 shape, e.g. with file parts); its role is the user's, however it is spelled. */
export type MessageInput =
  string | (Pick<Message, 'parts'> & Partial<Omit<Message, 'role'>> & { role?: 'ROLE_USER' | 'user' });

/** What goes along with a message. */
export interface SendOptions {
  contextId?: string;
  /** Continues this task, e.g. to answer its question; `sendAndWait` and `callAgent` wait for it and send nothing. */
  taskId?: string;
  /** True asks the agent to answer at once, with a task that goes on working. */
  async?: boolean;
  /** Makes a second send of the same message harmless, where the agent knows such keys. */
  idempotencyKey?: string;
  skillId?: string;
  /** Goes out as a data part after the text. */
  data?: JsonObject;
  metadata?: JsonObject;
  /** Milliseconds from the call to its last byte. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** How to wait. */
export interface WaitOptions extends SendOptions {
  /** 300,000 ms by default. */
  timeoutMs?: number;
  /** 2,000 ms by default. */
  pollMs?: number;
}
