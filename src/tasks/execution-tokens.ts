import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { TaskId } from '../kernel/ids.js';
import { Vault } from '../platform/secrets/vault.js';

const shape = /^Bearer (rx1\.([0-9a-f-]{36})(?:\.(\d{1,10}))?\.[A-Za-z0-9_-]{43})$/i;

/** The task, and optionally the lease, that a token gives access to. */
export interface TokenScope {
  readonly taskId: TaskId;
  /**
   * Epoch of the lease that the token was issued for; undefined for the service of an agent, which has the task until
   * it ends.
   */
  readonly epoch?: number;
}

/**
 * Issues and checks tokens that let their bearer report on one task, and nothing else. Stateless: a token carries an
 * HMAC, and nothing is stored.
 */
@Injectable()
export class ExecutionTokens {
  /** The first key signs; all keys verify. */
  private readonly keys: readonly [KeyObject, ...KeyObject[]];

  constructor(vault: Vault) {
    this.keys = vault.deriveAll('execution-token');
  }

  issue({ taskId, epoch }: TokenScope, [key] = this.keys): string {
    const scope = epoch === undefined ? taskId : `${taskId}.${epoch}`;
    return `rx1.${scope}.${createHmac('sha256', key).update(scope).digest('base64url')}`;
  }

  /** The scope of a request's token; undefined for any other credential. */
  scopeOf({ headersDistinct }: Pick<IncomingMessage, 'headersDistinct'>): TokenScope | undefined {
    const [header = '', second] = headersDistinct.authorization ?? [];
    const [, token, task, epoch] = (second === undefined && shape.exec(header)) || [];
    if (token === undefined) return undefined;
    const scope = { taskId: task as TaskId, ...(epoch !== undefined && { epoch: Number(epoch) }) };
    const given = Buffer.from(token);
    const isOurs = this.keys.some((key) => {
      const expected = Buffer.from(this.issue(scope, [key]));
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
    return isOurs ? scope : undefined;
  }
}
