import type { Client } from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import {
  answersTo,
  asksFirst,
  envelopeOf,
  maxRounds,
  tellProgress,
  tooManyRounds,
} from '../client-requests/client-requests.js';
import { LogLevels } from '../client-requests/log-levels.js';
import { anyValue } from '../transports/any-value.js';
import { rawOf } from '../transports/raw-results.js';
import type { Root } from '../upstream.types.js';
import type { CallOptions } from './upstream-connection.types.js';

/** Progress extends the timeout of a call, up to this limit. */
const maxCallMs = 3_600_000;
const noObject = 'the MCP server sent a result that is not an object';

/** Answer of the server to a request, or what the SDK threw. */
export type Sent = { readonly answer: JsonObject } | { readonly thrown: unknown };

/**
 * Sends requests on the clients of a connection, and counts them for each client. A client with a session that its
 * server forgot is closed only after its last call: such a call may still receive a refusal, after which it can be sent
 * again; a call that is cut off cannot.
 */
export class ClientCalls {
  private readonly calls = new Map<Client, number>();
  private readonly retired = new Set<Client>();
  private readonly logs = new LogLevels();

  constructor(private readonly roots: readonly Root[]) {}

  /** Sends a request, and answers what the server asks first. Never throws. */
  async sendRequest(client: Client, method: string, params: JsonObject, options: CallOptions): Promise<Sent> {
    const { timeoutMs, peer, signal, capabilities, headers, meta } = options;
    const { roots } = this;
    this.addCall(client);
    try {
      const isModern = eraOf(client) === 'modern';
      if (!isModern) await this.logs.heed(client, peer?.logLevel, timeoutMs);
      const envelope = isModern ? envelopeOf(peer, roots, capabilities) : undefined;
      const _meta = { ...meta, ...envelope, ...(params._meta as JsonObject) };
      const fullParams = Object.keys(_meta).length > 0 ? { ...params, _meta } : params;
      let answers = peer?.answers;
      for (let round = 0; round < maxRounds; round++) {
        const raw = await client.request({ method, params: { ...fullParams, ...answers } }, anyValue, {
          timeout: timeoutMs,
          resetTimeoutOnProgress: true,
          maxTotalTimeout: Math.max(timeoutMs, maxCallMs),
          signal,
          headers: isModern ? headers : undefined,
          allowInputRequired: true,
          onprogress: (progress) => tellProgress(peer, progress as unknown as JsonObject),
        });
        const answer = rawOf(raw);
        if (!isJsonObject(answer)) throw new RialtoError('remote_invalid_response', { message: noObject });
        answers = asksFirst(answer) ? await answersTo(answer, { peer, roots, signal }) : undefined;
        if (!answers) return { answer };
      }
      throw tooManyRounds();
    } catch (thrown) {
      return { thrown };
    } finally {
      this.removeCall(client);
    }
  }

  /** Closes a client after its last running call; it gets no new calls. */
  setAside(client: Client): void {
    if (this.calls.has(client)) this.retired.add(client);
    else void closeQuietly(client);
  }

  /** Closes a client and all clients that were set aside, at once. */
  async close(client?: Client): Promise<void> {
    const all = [...this.retired, ...(client ? [client] : [])];
    this.retired.clear();
    await Promise.all(all.map(closeQuietly));
  }

  private addCall(client: Client): void {
    this.calls.set(client, (this.calls.get(client) ?? 0) + 1);
  }

  private removeCall(client: Client): void {
    const left = this.calls.get(client)! - 1;
    if (left > 0) this.calls.set(client, left);
    else this.calls.delete(client);
    if (left === 0 && this.retired.delete(client)) void closeQuietly(client);
  }
}

/** Returns the era of the protocol revision that a client negotiated; undefined before it is connected. */
export function eraOf(client: Client | undefined): 'legacy' | 'modern' | undefined {
  const version = client?.getNegotiatedProtocolVersion();
  return version === undefined ? undefined : version >= '2026' ? 'modern' : 'legacy';
}

function closeQuietly(client: Client): Promise<void> {
  return client.close().catch(() => undefined);
}
