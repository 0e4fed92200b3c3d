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
import { TaskService } from '../tasks/task.service.js';
import { exactPath } from './a2a-paths.js';
import { sendJson } from './reply.js';

const path = '/_agent-native/a2a/_process-task';
const maxBodyBytes = 4_096;
const bearer = /^Bearer ([\w.]{1,200})$/i;

/**
 * The wake-up of one task, as agent-native's callers send it: signed for that task alone. Here a row and its queue do the work,
 * so this only makes a worker look at once (AN-10, AN-15, AN-52).
 */
@Injectable()
export class ProcessTaskDoor {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly tasks: TaskService,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** The rows of the front door's table. */
  routes(): HotRoute[] {
    return [
      {
        template: path,
        methods: ['POST'],
        summary: 'Wakes a task; signed for it alone',
        match: exactPath(path),
        handle: (request, response) => this.handle(request, response),
      },
    ];
  }

  private async handle(request: DoorRequest, response: DoorResponse): Promise<void> {
    try {
      const id = await this.verified(request);
      sendJson(response, 200, { ok: true, taskId: id, woken: await this.tasks.wake(id) });
    } catch (thrown) {
      const error = RialtoError.from(thrown);
      if (error.code === 'internal') this.log.error({ err: thrown, requestId: request.requestId }, 'a request failed');
      if (response.headersSent || response.destroyed) response.destroy();
      else sendProblem(request, response, error.code, error);
    }
  }

  /** Throws `auth_not_configured` without a secret, `invalid_params` without a task, `unauthenticated` for a wrong token. */
  private async verified(request: DoorRequest): Promise<string> {
    const { A2A_SECRET: secret } = this.settings;
    if (secret === undefined)
      throw new RialtoError('auth_not_configured', { message: 'internal calls need A2A_SECRET' });
    const parsed = parseJson(await readText(request, maxBodyBytes));
    const taskId = parsed.ok && isJsonObject(parsed.value) ? parsed.value.taskId : undefined;
    if (typeof taskId !== 'string' || taskId === '')
      throw new RialtoError('invalid_params', { message: 'taskId required' });
    const [, token = ''] = bearer.exec(request.headers.authorization ?? '') ?? [];
    if (isInternalToken(secret, taskId, token, systemClock.now())) return taskId;
    throw new RialtoError('unauthenticated', { message: 'Invalid or expired internal token' });
  }
}
