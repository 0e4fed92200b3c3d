import type { JsonObject } from '../../kernel/json.js';
import type { NormalisedCard } from '../../protocol/a2a/card/card.js';
import type { Message } from '../../protocol/a2a/model.js';

/** An agent card in one shape for all versions, with the document as the agent sent it. */
export type FoundCard = NormalisedCard & { readonly raw: JsonObject };

/** Credentials of the client, and the addresses that it may reach. Nothing is read from the environment. */
export interface A2AClientOptions {
  /** A static bearer key. Tried before the token when both are given; the other one is tried on 401 and 403. */
  apiKey?: string;
  /**
   * A shared secret (A2A_SECRET of the agent's deployment): signs an HS256 token of 15 minutes for each request. Needs
   * `userEmail`.
   */
  secret?: string;
  /** `sub` of the token. */
  userEmail?: string;
  /** `org_domain` of the token: the slug of the org to act in. */
  orgDomain?: string;
  /** `iss` of the token; `rialto` by default. */
  issuer?: string;
  /** `aud` of the token; `rialto` by default. */
  audience?: string;
  /**
   * Private hosts, CIDRs or origins that may be called, comma separated: `127.0.0.0/8, agent.internal`. Default: none.
   */
  allow?: string;
  /** Allows plain http to public hosts; hosts in `allow` may use it in any case. */
  allowHttp?: boolean;
  /** Deadline of a call that sets none; 60,000 ms by default. */
  timeoutMs?: number;
}

/**
 * A text, or a complete message (v1.0 shape, e.g. with file parts); its role must be the user's, in either spelling.
 */
export type MessageInput =
  string | (Pick<Message, 'parts'> & Partial<Omit<Message, 'role'>> & { role?: 'ROLE_USER' | 'user' });

/** Options that are sent along with a message. */
export interface SendOptions {
  contextId?: string;
  /** Continues this task, e.g. to answer its question; `sendAndWait` and `callAgent` wait for it and send nothing. */
  taskId?: string;
  /** True asks the agent to answer at once, with a task that continues to work. */
  async?: boolean;
  /** Makes a second send of the same message harmless, when the agent supports such keys. */
  idempotencyKey?: string;
  skillId?: string;
  /** Sent as a data part after the text. */
  data?: JsonObject;
  metadata?: JsonObject;
  /** Milliseconds from the call to its last byte. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** Timeout and poll interval of a wait. */
export interface WaitOptions extends SendOptions {
  /** 300,000 ms by default. */
  timeoutMs?: number;
  /** 2,000 ms by default. */
  pollMs?: number;
}
