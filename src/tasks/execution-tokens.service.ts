import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { TaskId } from '../kernel/ids.js';
import { Vault } from '../platform/secrets/vault.js';

const shape = /^Bearer (rx1\.([0-9a-f-]{36})\.[A-Za-z0-9_-]{43})$/i;

/** Tokens that let their bearer report on one task, and nothing else. Nothing is stored: they are recognised by their mark. */
@Injectable()
export class ExecutionTokens {
  private readonly key: Buffer;

  constructor(vault: Vault) {
    this.key = vault.derive('execution-token');
  }

  issue(task: TaskId): string {
    return `rx1.${task}.${createHmac('sha256', this.key).update(task).digest('base64url')}`;
  }

  /** The task whose token a request bears; undefined for any other credential. */
  taskOf({ headersDistinct }: Pick<IncomingMessage, 'headersDistinct'>): TaskId | undefined {
    const [header = '', second] = headersDistinct.authorization ?? [];
    const [, token, task] = (second === undefined && shape.exec(header)) || [];
    if (token === undefined) return undefined;
    const expected = Buffer.from(this.issue(task as TaskId));
    const given = Buffer.from(token);
    return given.length === expected.length && timingSafeEqual(given, expected) ? (task as TaskId) : undefined;
  }
}
