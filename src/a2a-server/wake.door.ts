import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { isJsonObject } from '../kernel/json.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { readText } from '../platform/http/body.js';
import type { DoorRequest, DoorResponse, HotRoute } from '../platform/http/http.types.js';
import { sendProblem } from '../platform/http/problem.js';
import { isInternalToken } from '../platform/secrets/internal-token.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { parseJson } from '../protocol/jsonrpc.js';
import { ContinuationService } from '../continuations/continuation.service.js';
import { TaskService } from '../tasks/task.service.js';
import { exactPath } from './a2a-paths.js';
import { sendJson } from './reply.js';

const maxBodyBytes = 4_096;
const bearer = /^Bearer ([\w.]{1,200})$/i;

/** Kind of row that an external request can wake. */
interface Wakeable {
  readonly path: string;
  readonly summary: string;
  /** Member of the body with the id of the row. */
  readonly member: string;
  readonly wake: (id: string) => Promise<boolean>;
}

/**
 * Wakes one row, as clients of agent-native do. The token is signed for that row only. Rows and their queues do the
 * work here; the request only makes a worker check the row at once (AN-10, AN-15, AN-52, AN-100).
 */
@Injectable()
export class WakeDoor {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly tasks: TaskService,
    private readonly continuations: ContinuationService,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Routes for the table of the front door. */
  routes(): HotRoute[] {
    const wakeables: Wakeable[] = [
      {
        path: '/_agent-native/a2a/_process-task',
        summary: 'Wake a task; the token is signed for this task only',
        member: 'taskId',
        wake: (id) => this.tasks.wake(id),
      },
      {
        path: '/_agent-native/integrations/process-a2a-continuation',
        summary: 'Resume a continuation; the token is signed for it only',
        member: 'continuationId',
        wake: (id) => this.continuations.wake(id),
      },
    ];
    return wakeables.map((row) => ({
      template: row.path,
      methods: ['POST'],
      summary: row.summary,
      match: exactPath(row.path),
      handle: (request, response) => this.handleRequest(row, request, response),
    }));
  }

  private async handleRequest({ member, wake }: Wakeable, request: DoorRequest, response: DoorResponse): Promise<void> {
    try {
      const id = await this.verified(request, member);
      sendJson(response, 200, { ok: true, [member]: id, woken: await wake(id) });
    } catch (thrown) {
      const error = RialtoError.from(thrown);
      if (error.code === 'internal') this.log.error({ err: thrown, requestId: request.requestId }, 'a request failed');
      if (response.headersSent || response.destroyed) response.destroy();
      else sendProblem(request, response, error.code, error);
    }
  }

  /**
   * Checks the token and returns the id. Throws `auth_not_configured` without a secret, `invalid_params` without an
   * id, `unauthenticated` for a wrong token.
   */
  private async verified(request: DoorRequest, member: string): Promise<string> {
    const { A2A_SECRET: secret } = this.settings;
    if (secret === undefined)
      throw new RialtoError('auth_not_configured', { message: 'internal calls need the setting A2A_SECRET' });
    const parsed = parseJson(await readText(request, maxBodyBytes));
    const id = parsed.ok && isJsonObject(parsed.value) ? parsed.value[member] : undefined;
    if (typeof id !== 'string' || id === '')
      throw new RialtoError('invalid_params', { message: `${member} is required` });
    const [, token = ''] = bearer.exec(request.headers.authorization ?? '') ?? [];
    if (isInternalToken(secret, id, token, systemClock.now())) return id;
    throw new RialtoError('unauthenticated', { message: 'Invalid or expired internal token' });
  }
}
