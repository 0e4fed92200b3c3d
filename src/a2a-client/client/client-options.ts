import type { Json, JsonObject } from '../../kernel/json.js';
import type { NormalisedCard } from '../../protocol/a2a/card/card.js';
import type { Message, Part } from '../../protocol/a2a/model.js';
import type { EncryptionOptions } from './client-encryption.js';

/** An agent card in one shape for all versions, with the document as the agent sent it. */
export type FoundCard = NormalisedCard & { readonly raw: JsonObject };

/** Credentials of the client, and the addresses that it may reach. */
export interface A2AClientOptions {
  /** A static bearer key. Tried before the token when both are given; the other one is tried on 401 and 403. */
  apiKey?: string | undefined;
  /**
   * A shared secret (A2A_SECRET of the agent's deployment): signs an HS256 token of 15 minutes for each request. Needs
   * `userEmail`. Default with a `userEmail`: A2A_SECRET of the environment; nothing else is read there.
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
  /**
   * Encrypts messages end to end for agents that offer it on their card, and decrypts the answers
   * (docs/encryption.md).
   */
  e2ee?: EncryptionOptions;
  /** Deadline of a call that sets none; 60,000 ms by default. */
  timeoutMs?: number;
}

/** A part in the form of older agents, which name the kind of a part `type`, or of v0.3, which names it `kind`. */
export type OlderPart = Tagged<'text', { text: string }> | Tagged<'data', { data: Json }> | Tagged<'file', OlderFile>;
type Tagged<Kind extends string, Content> = ({ type: Kind } | { kind: Kind }) & Content & { metadata?: JsonObject };
interface OlderFile {
  file: { name?: string; mimeType?: string; bytes?: string; uri?: string };
}

/**
 * A text, or a complete message (v1.0 shape, e.g. with file parts); its role must be the user's, in either spelling.
 */
export type MessageInput =
  string | (Partial<Omit<Message, 'role' | 'parts'>> & { parts: (Part | OlderPart)[]; role?: 'ROLE_USER' | 'user' });

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
  /** From 1,000 to 300,000 ms, which is the default. */
  timeoutMs?: number;
  /** 2,000 ms by default. */
  pollMs?: number;
}
