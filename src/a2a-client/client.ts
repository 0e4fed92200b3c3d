import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { environmentOfProcess } from '../platform/config/environment.js';
import type { StreamResponse, Task } from '../protocol/a2a/model.js';
import { interruptedStates, terminalStates } from '../protocol/a2a/states.js';
import { parseAllowList } from '../platform/http/outbound/address.js';
import { SafeFetch } from '../platform/http/outbound/safe-fetch.js';
import { baseOf, findCard } from './client/client-discovery.js';
import { ClientEncryption, opened, openedEvents, openedTask } from './client/client-encryption.js';
import { asClientError } from './client/client-errors.js';
import { ClientHeaders, identitiesOf, type Identity, type Proofs } from './client/client-identity.js';
import type { A2AClientOptions, FoundCard, MessageInput, SendOptions, WaitOptions } from './client/client-options.js';
import { paramsOf } from './client/client-message.js';
import { replyWithStatus, withStatuses, type WithStatus } from './client/client-status.js';
import { replyText } from './client/client-text.js';
import { Deadline } from '../kernel/abort.js';
import {
  chooseEndpoints,
  endpointsWithoutCard,
  isNotHere,
  withCustomaryPaths,
  type Endpoint,
} from './transports/endpoint-choice.js';
import { waitBounds, waitOf } from './client/wait-bounds.js';
import { nextPollAfter, nextTryAfter, type RemoteOperation } from './transports/retry-plan.js';
import type { SendReply } from './transports/send-reply.js';
import { sleep } from './transports/remote-wait.js';
import { SdkTransport, type SdkHop } from './transports/sdk.transport.js';

export { A2AClientError, type A2AClientErrorCode, type A2AClientErrorDetails } from './client/client-errors.js';
export type { A2AClientOptions, FoundCard, MessageInput, SendOptions, WaitOptions } from './client/client-options.js';
export type { Artifact, Message, Part, StreamResponse, Task, TaskStatus } from '../protocol/a2a/model.js';
export type { TaskState } from '../protocol/a2a/states.js';
export type { WithStatus } from './client/client-status.js';
export type { EncryptionOptions, PinStore } from './client/client-encryption.js';
export type { SendReply } from './transports/send-reply.js';

const discoveryLimitMs = 3_000;
const pollLimitMs = 15_000;
const callDefaultMs = 60_000;
const pollDefaultMs = 2_000;
/** Name of the allow list of a client, for hints. */
const allowedBy = 'the option `allow`';
const read: RemoteOperation = { kind: 'read' };

/** A call while it runs. */
interface Call {
  readonly deadline: Deadline;
  readonly signals: readonly AbortSignal[];
  readonly extra?: Record<string, string>;
  readonly amend?: SdkHop['amend'];
}

/**
 * Asks an A2A agent and resolves with the text of its answer: the last artifact or message, at most 32,768 characters.
 * Sends asynchronously and polls; `async: false` makes it one blocking request. Rejects with `A2AClientError`. After
 * `a2a_timeout`, pass its `taskId` to a second call: that call continues to wait and sends nothing (AN-26, AN-27,
 * AN-35).
 *
 * ```ts
 * import { callAgent } from 'rialto/client';
 *
 * const answer = await callAgent('https://agents.example.com', 'How many orders are late?', { apiKey });
 * ```
 */
export async function callAgent(
  url: string,
  text: string,
  options: A2AClientOptions & WaitOptions = {},
): Promise<string> {
  const client = new A2AClient(url, options);
  try {
    return replyText(await client.sendAndWait(text, options));
  } finally {
    await client.close();
  }
}

/**
 * Client for one A2A agent, v1.0 or v0.3, over JSON-RPC, HTTP+JSON or gRPC, as its card says; an agent without a card
 * is called at the customary paths. Values have the v1.0 shape for every version of the agent. Private addresses are
 * refused unless `allow` names them; requests never follow redirects, card requests follow at most three. Every failure
 * is an `A2AClientError`.
 *
 * ```ts
 * import { A2AClient } from 'rialto/client';
 *
 * const client = new A2AClient('https://agents.example.com', {
 *   secret,
 *   userEmail: 'bob@acme.example',
 *   orgDomain: 'acme',
 * });
 * const reply = await client.sendAndWait('Summarise ticket 42', { skillId: 'summarise' });
 * for await (const event of client.stream('Tell me more')) console.log(event);
 * await client.close();
 * ```
 */
export class A2AClient {
  private readonly fetch: SafeFetch;
  private readonly sdk: SdkTransport;
  private readonly proofs: Proofs;
  private readonly encryption: ClientEncryption;
  private readonly base: string;
  private identities: Identity[];
  private card?: FoundCard;
  /** The endpoint that answered; later requests go to it, because a task exists only where it was created. */
  private home?: Endpoint;

  private readonly options: A2AClientOptions;

  /**
   * Throws `url_not_allowed` when `url` is not a URL, and `invalid_params` for a bad `allow` or for incomplete
   * credentials, and `encryption_failed` for own keys that are not private ones.
   *
   * @param given a text is the `apiKey`.
   */
  constructor(
    private readonly url: string,
    given: A2AClientOptions | string = {},
  ) {
    try {
      const options = optionsOf(given);
      this.options = options;
      const policy = { allow: parseAllowList(options.allow ?? ''), httpsOnly: options.allowHttp !== true, allowedBy };
      this.fetch = new SafeFetch(policy);
      this.sdk = new SdkTransport(this.fetch, policy);
      this.base = baseOf(url);
      this.encryption = new ClientEncryption(options.e2ee, this.fetch, this.base);
    } catch (error) {
      throw asClientError(error);
    }
    this.proofs = { issuer: 'rialto', audience: 'rialto', ...withoutUndefined(this.options) };
    this.identities = identitiesOf(this.proofs);
  }

  /** Returns the agent's card, fetched once; `raw` is the document as the agent sent it. */
  getAgentCard({
    timeoutMs = discoveryLimitMs,
    signal,
  }: Pick<SendOptions, 'timeoutMs' | 'signal'> = {}): Promise<FoundCard> {
    return asClientErrors(this.discover({ deadline: new Deadline(timeoutMs), signals: signal ? [signal] : [] }));
  }

  /** Sends a message and resolves with the agent's answer: a message, or a task that may still be working. */
  send(message: MessageInput, options: SendOptions = {}): Promise<WithStatus<SendReply>> {
    const call = this.startCall(options, this.options.timeoutMs ?? callDefaultMs);
    return asClientErrors(this.sendMessage(message, options, call).then(replyWithStatus));
  }

  /** Sends a message and yields its events until the agent ends the stream; leaving the loop closes the connection. */
  async *stream(message: MessageInput, options: SendOptions = {}): AsyncGenerator<WithStatus<StreamResponse>, void> {
    const call = { ...this.startCall(options, this.options.timeoutMs ?? waitBounds.most), ...keyedCall(options) };
    const { params, opener } = await asClientErrors(this.outgoing(message, options, call));
    const open = async (hop: SdkHop) => {
      this.encryption.requireCleartextAllowed(this.card);
      const rest = this.sdk.stream(hop, params);
      return { first: await rest.next(), rest };
    };
    const { first, rest } = await asClientErrors(this.tryEndpoints(call, { kind: 'write' }, open));
    try {
      yield* withStatuses(openedEvents(withFirst(first, rest), opener));
    } catch (error) {
      throw asClientError(error);
    } finally {
      await rest.return();
    }
  }

  /**
   * Sends a message and polls its task until it settles: it has ended, or it waits for its caller. A poll that gets no
   * answer, or HTTP 408, 425, 429 or 5xx, is repeated until the deadline. With `taskId` it sends nothing and waits for
   * that task. At the deadline it rejects with `a2a_timeout`, which carries the `taskId` (AN-28, AN-34, AN-35). A
   * `timeoutMs` below 1,000 or above 300,000 is `invalid_params`, and nothing is sent (RI-51).
   */
  async sendAndWait(message: MessageInput, options: WaitOptions = {}): Promise<WithStatus<SendReply>> {
    return replyWithStatus(await this.settle(message, options));
  }

  /** Returns the task as it is now. */
  getTask(
    taskId: string,
    options: Pick<SendOptions, 'timeoutMs' | 'signal'> & { historyLength?: number } = {},
  ): Promise<Task> {
    const call = this.startCall(options, pollLimitMs);
    return asClientErrors(this.readTask(taskId, call, options.historyLength), taskId);
  }

  /** Asks the agent to stop the task; resolves with the task in the state that the agent then reports. */
  cancelTask(taskId: string, options: Pick<SendOptions, 'timeoutMs' | 'signal'> = {}): Promise<Task> {
    const call = this.startCall(options, pollLimitMs);
    return asClientErrors(
      this.tryEndpoints(call, { kind: 'write' }, (hop) => this.sdk.cancelTask(hop, taskId)).then((task) =>
        openedTask(task, this.encryption.openerFor(this.card, call)),
      ),
      taskId,
    );
  }

  /** Closes every connection of this client. */
  async close(): Promise<void> {
    this.sdk.close();
    await this.fetch.close();
  }

  private startCall({ timeoutMs, signal }: SendOptions, defaultMs: number): Call {
    return { deadline: new Deadline(timeoutMs ?? defaultMs), signals: signal ? [signal] : [] };
  }

  private async settle(message: MessageInput, options: WaitOptions): Promise<SendReply> {
    const call = this.startCall({ ...options, timeoutMs: waitOf(options.timeoutMs) }, waitBounds.most);
    const pollMs = options.pollMs ?? pollDefaultMs;
    if (options.taskId !== undefined)
      return asClientErrors(this.pollUntilSettled(options.taskId, call, pollMs, true), options.taskId);
    const reply = await asClientErrors(this.sendMessage(message, { async: true, ...options }, call));
    if (isSettled(reply) || 'message' in reply) return reply;
    return asClientErrors(this.pollUntilSettled(reply.task.id, call, pollMs, false), reply.task.id);
  }

  private async sendMessage(message: MessageInput, options: SendOptions, call: Call): Promise<SendReply> {
    const { async: isAsync = false, idempotencyKey } = options;
    const { params, opener } = await this.outgoing(message, options, call);
    const subject = this.proofs.secret && this.proofs.userEmail;
    const sending = { ...call, ...keyedCall(options) };
    const reply = await this.tryEndpoints(sending, { kind: 'send', isAsync, idempotencyKey, subject }, (hop) => {
      this.encryption.requireCleartextAllowed(this.card);
      return this.sdk.send(hop, params);
    });
    return opened(reply, opener);
  }

  /** Returns what is sent, encrypted when the card offers it, and the opener of its answers. */
  private async outgoing(input: MessageInput, options: SendOptions, call: Call) {
    const params = paramsOf(input, options);
    if (!this.encryption.isOn) return { params };
    const card = await this.discover(call);
    const message = await this.encryption.seal(params.message, card, call);
    return { params: { ...params, message }, opener: this.encryption.openerFor(card, call, message.messageId) };
  }

  private async readTask(taskId: string, call: Call, historyLength?: number): Promise<Task> {
    const task = await this.tryEndpoints(call, read, (hop) => this.sdk.getTask(hop, taskId, historyLength));
    return openedTask(task, this.encryption.openerFor(this.card, call));
  }

  private async pollUntilSettled(taskId: string, call: Call, pollMs: number, pollsAtOnce: boolean): Promise<SendReply> {
    for (let pause = pollsAtOnce ? 0 : pollMs; ;) {
      await sleep(Math.min(pause, call.deadline.leftMs), call.signals[0]);
      if (call.deadline.leftMs === 0) throw new RialtoError('remote_timeout', { data: { taskId } });
      const poll = { ...call, deadline: call.deadline.within(pollLimitMs) };
      try {
        const task = await this.readTask(taskId, poll);
        if (isSettled({ task })) return { task };
        pause = pollMs;
      } catch (thrown) {
        const next = nextPollAfter(RialtoError.from(thrown), pollMs, systemClock.now());
        if (next === undefined) throw thrown;
        pause = next;
      }
    }
  }

  /**
   * Runs the work over endpoints × credentials × tries; goes to the next one only when the previous one cannot have
   * had an effect.
   */
  private async tryEndpoints<T>(call: Call, operation: RemoteOperation, work: (hop: SdkHop) => Promise<T>): Promise<T> {
    const endpoints = this.home ? [this.home] : await this.endpoints(call);
    let failure: unknown;
    for (const endpoint of endpoints) {
      try {
        const result = await this.withProofs(endpoint, call, operation, work);
        this.home = endpoint;
        return result;
      } catch (error) {
        failure ??= error;
        if (!isNotHere(error)) throw error;
      }
    }
    throw RialtoError.from(failure);
  }

  private async withProofs<T>(
    endpoint: Endpoint,
    call: Call,
    operation: RemoteOperation,
    work: (hop: SdkHop) => Promise<T>,
  ) {
    for (const [index, identity] of this.identities.entries()) {
      const headers = new ClientHeaders(this.url, this.proofs, identity, call.extra);
      try {
        const result = await this.withRetries({ ...call, endpoint, headers }, operation, work);
        this.identities = [identity, ...this.identities.filter((other) => other !== identity)];
        return result;
      } catch (error) {
        const { httpStatus } = RialtoError.from(error).data ?? {};
        const isLast = index === this.identities.length - 1;
        if (isLast || (httpStatus !== 401 && httpStatus !== 403)) throw error;
      }
    }
    throw new RialtoError('internal');
  }

  private async withRetries<T>(hop: SdkHop, operation: RemoteOperation, work: (hop: SdkHop) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await work(hop);
      } catch (error) {
        const { leftMs } = hop.deadline;
        const pause = nextTryAfter(operation, RialtoError.from(error), { tries, leftMs, now: systemClock.now() });
        if (pause === undefined) throw error;
        await sleep(pause, hop.signals[0]);
      }
    }
  }

  /**
   * Returns the endpoints of the card, or the customary ones when the card is late, invalid or missing (AN-29…AN-31).
   */
  private async endpoints(call: Call): Promise<Endpoint[]> {
    const deadline = call.deadline.within(Math.min(discoveryLimitMs, call.deadline.leftMs / 4));
    try {
      const [first, ...others] = chooseEndpoints(await this.discover({ ...call, deadline }));
      if (!first) return endpointsWithoutCard(this.base);
      return [first, ...others, ...withCustomaryPaths(first, this.base).slice(1)];
    } catch (error) {
      const { code } = RialtoError.from(error);
      if (code === 'url_not_allowed' || code === 'canceled' || code === 'internal') throw error;
      return endpointsWithoutCard(this.base);
    }
  }

  private async discover(call: Call): Promise<FoundCard> {
    const headers = new ClientHeaders(this.url, this.proofs, this.identities[0]!);
    this.card ??= await findCard(this.fetch, this.url, headers, call);
    return this.card;
  }
}

/**
 * Returns the options of a client. Throws `invalid_params` for options that would make a client anonymous although it
 * was meant to prove its identity.
 */
function optionsOf(given: A2AClientOptions | string): A2AClientOptions {
  const options = typeof given === 'string' ? { apiKey: given } : given;
  if (typeof options !== 'object' || options === null || given === '') {
    const what = given === '' ? 'an empty text' : options === null ? 'null' : typeof options;
    throw new RialtoError('invalid_params', {
      message: `the options of a client are its key or an object such as { apiKey }, not ${what}`,
    });
  }
  const secret = options.secret ?? (options.userEmail ? environmentOfProcess().A2A_SECRET : undefined);
  if (options.userEmail && !secret)
    throw new RialtoError('invalid_params', {
      message: 'userEmail needs secret, or A2A_SECRET in the environment, which signs for it',
    });
  if (secret && !options.userEmail)
    throw new RialtoError('invalid_params', { message: 'secret needs userEmail, which the token names' });
  return { ...options, ...(secret !== undefined && { secret }) };
}

/**
 * Sends the key as a header to every agent, and also puts it with the async flag into the params, where older peers
 * look for them (AN-12, AN-33).
 */
function keyedCall({ async: isAsync, idempotencyKey }: SendOptions): Pick<Call, 'extra' | 'amend'> {
  return {
    extra: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
    amend: (params) => {
      if (isAsync !== undefined) params.async = isAsync;
      if (idempotencyKey !== undefined) params.idempotencyKey = idempotencyKey;
    },
  };
}

async function* withFirst(
  first: IteratorResult<StreamResponse, void>,
  rest: AsyncIterable<StreamResponse>,
): AsyncGenerator<StreamResponse, void> {
  if (!first.done) yield first.value;
  yield* rest;
}

function isSettled(reply: SendReply): boolean {
  if ('message' in reply) return true;
  return terminalStates.has(reply.task.status.state) || interruptedStates.has(reply.task.status.state);
}

async function asClientErrors<T>(work: Promise<T>, taskId?: string): Promise<T> {
  return work.catch((error: unknown) => {
    throw asClientError(error, taskId);
  });
}

function withoutUndefined<T extends object>(object: T): Partial<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Partial<T>;
}
