import { hash } from 'node:crypto';
import { BoundedMap } from '../../kernel/bounded-map.js';
import { canonicalJson } from '../../kernel/canonical-json.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import type { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import type { Message, StreamResponse, Task } from '../../protocol/a2a/model.js';
import { parseJson } from '../../protocol/jsonrpc.js';
import { encryptionOffer, type EncryptionOffer } from '../../protocol/e2ee/card-extension.js';
import { encrypt } from '../../protocol/e2ee/encrypt.js';
import { E2eeError } from '../../protocol/e2ee/errors.js';
import {
  checkPins,
  currentKey,
  readKeySet,
  requirePrivateKeys,
  type KeyRing,
  type KeySet,
} from '../../protocol/e2ee/keys.js';
import { partsPayload, partsType } from '../../protocol/e2ee/parts.js';
import type { HopLimits } from '../transports/remote-hop.js';
import type { SendReply } from '../transports/send-reply.js';
import type { FoundCard } from './client-options.js';
import { ReplyOpener } from './reply-opener.js';

/**
 * Keeps the pinned keys of agents. Give one with a file or a table, so that a restart does not trust anew. An agent is
 * named by the URL that its client was made with, without the path of the card, query, fragment and trailing slash.
 */
export interface PinStore {
  get(agent: string): readonly string[] | undefined | Promise<readonly string[] | undefined>;
  set(agent: string, kids: readonly string[]): unknown;
}

/** Lets a client encrypt what it sends, and decrypt the answers. */
export interface EncryptionOptions {
  /** Own keys, from `generateKeys` of `rialto/e2ee` or `rialto keys e2ee new`. */
  keys: KeyRing;
  /** Own name, by which agents find the public half of the keys, e.g. the address of a `keys.json`. */
  sender: string;
  /** In memory by default: the first keys of an agent are trusted as long as the client lives. */
  pins?: PinStore;
  /** False sends cleartext to agents that offer no encryption on their card. By default such a send fails. */
  required?: boolean;
}

const keysDeadlineMs = 5_000;
const keysMaxBytes = 262_144;
const keysFreshMs = 5_000;
/** Messages of a client that it sends again as they were: as many as may wait for an approval at the same time. */
const maxSealed = 100;

/** Encrypts for agents that offer it on their card, and opens their answers (docs/encryption.md). */
export class ClientEncryption {
  private readonly pins: PinStore;
  /** The newest encrypted messages by the digest of their content, ids and keys. */
  private readonly sealed = new BoundedMap<string, Pick<Message, 'contextId' | 'parts'>>(maxSealed);
  private known?: { readonly set: KeySet; readonly at: number };

  /**
   * Throws an E2eeError for keys that are not the own private ones.
   * @param agent address of the agent from the user. A relay can change the card, so pins have no address of it.
   */
  constructor(
    private readonly options: EncryptionOptions | undefined,
    private readonly fetch: SafeFetch,
    private readonly agent: string,
  ) {
    if (options) requirePrivateKeys(options.keys, 'enc', 'sig');
    this.pins = options?.pins ?? new Map<string, readonly string[]>();
  }

  get isOn(): boolean {
    return this.options !== undefined;
  }

  /**
   * Encrypts the parts of a message; its ids and its metadata stay visible. Returns the message itself when there is
   * no encryption. A message that is sent again with the same id has the same envelope, so that an approval of the
   * first send fits. Throws an E2eeError, and `invalid_params` when the card offers none although it is required.
   */
  async seal(message: Message, card: FoundCard | undefined, limits: HopLimits): Promise<Message> {
    const offer = this.offerOf(card);
    if (!this.options || !offer) return message;
    const { keys, sender } = this.options;
    const { messageId, contextId = newId(), taskId } = message;
    const recipientKeys = await this.keysOf(offer, limits);
    const payload = partsPayload(message.parts);
    const kids = [currentKey(keys.keys, 'sig').kid, currentKey(recipientKeys.keys, 'enc').kid];
    const ids = [offer.keys, messageId, message.contextId ?? null, taskId ?? null];
    const digest = hash('sha256', canonicalJson([...ids, ...kids, String(payload)]));
    const known = this.sealed.use(digest);
    if (known) return { ...message, ...known };
    const place = { messageId, contextId, ...(taskId !== undefined && { taskId }) };
    const outgoing = { ...place, keys, sender, recipient: offer.keys, recipientKeys, contentType: partsType };
    const sealed = { contextId, parts: [{ data: { ...(await encrypt(payload, outgoing)) } }] };
    this.sealed.set(digest, sealed);
    return { ...message, ...sealed };
  }

  /**
   * Returns an opener for the answers of an agent; undefined when there is no encryption. Throws `invalid_params` as
   * `seal` does, because a relay could have removed the offer from the card and written the answers itself.
   */
  openerFor(card: FoundCard | undefined, limits: HopLimits, inReplyTo?: string): ReplyOpener | undefined {
    const offer = this.offerOf(card);
    if (!this.options || !offer) return undefined;
    const { keys, sender } = this.options;
    const keysOf = (name: string) => (name === offer.keys ? this.keysOf(offer, limits) : undefined);
    return new ReplyOpener({ keys, recipient: sender, keysOf }, inReplyTo);
  }

  /** Refuses to send cleartext to an agent that states on its card that it takes none. */
  requireCleartextAllowed(card: FoundCard | undefined): void {
    if (this.options || !encryptionOffer(card?.raw)?.required) return;
    throw new RialtoError('invalid_params', {
      message: 'this agent accepts encrypted messages only: give the client its keys in the option "e2ee"',
    });
  }

  private offerOf(card: FoundCard | undefined): EncryptionOffer | undefined {
    const offer = encryptionOffer(card?.raw);
    if (this.options && !offer && this.options.required !== false)
      throw new RialtoError('invalid_params', {
        message:
          'the card of this agent offers no encryption, so no message is sent or read; e2ee.required: false allows it',
      });
    return offer;
  }

  private async keysOf({ keys: url }: EncryptionOffer, { signals }: HopLimits): Promise<KeySet> {
    if (this.known && systemClock.now() - this.known.at < keysFreshMs) return this.known.set;
    const headers = { accept: 'application/json' };
    const limits = { deadlineMs: keysDeadlineMs, maxBytes: keysMaxBytes, signal: signals };
    const answer = await this.fetch.request({ method: 'GET', url, headers, ...limits });
    const parsed = parseJson(answer.body.toString('utf8'));
    if (answer.status !== 200 || !parsed.ok)
      throw new E2eeError('malformed', `the keys of the agent cannot be read (HTTP ${answer.status})`);
    const set = readKeySet(parsed.value);
    await this.pins.set(this.agent, checkPins(set, await this.pinned(url)));
    this.known = { set, at: systemClock.now() };
    return set;
  }

  /** Returns the pins of the agent. An earlier version stored them under the address of the keys. */
  private async pinned(keysUrl: string): Promise<readonly string[]> {
    const pinned = (await this.pins.get(this.agent)) ?? [];
    return pinned.length > 0 ? pinned : ((await this.pins.get(keysUrl)) ?? []);
  }
}

/** Opens an answer when there is an opener. */
export async function opened(reply: SendReply, opener: ReplyOpener | undefined): Promise<SendReply> {
  return opener ? opener.openReply(reply) : reply;
}

export async function openedTask(task: Task, opener: ReplyOpener | undefined): Promise<Task> {
  return opener ? opener.openTask(task) : task;
}

/** Opens the events of a stream; at its end, reports a truncated one. */
export async function* openedEvents(
  events: AsyncIterable<StreamResponse>,
  opener: ReplyOpener | undefined,
): AsyncGenerator<StreamResponse, void> {
  for await (const event of events) yield opener ? await opener.openEvent(event) : event;
  opener?.end();
}
