import { getQueueToken } from '@nestjs/bullmq';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Queue } from 'bullmq';
import type { Express, Request, RequestHandler, Response } from 'express';
import { jobs } from '../../kernel/jobs.js';
import { contentPolicy } from '../http/content-policy.js';
import type { DoorRequest } from '../http/http.types.js';
import type { Gate } from '../http/openapi.js';
import { PublicUrl } from '../http/public-url.js';
import { sendProblem } from '../http/problem.js';

const boardPath = '/admin/queues';

/**
 * Mounts Bull Board behind its own authentication, because Nest's guards do not see Express middleware. It is loaded
 * at the first request. `bodies` reads its request bodies. No request below its path continues to other routes, which
 * would wait for a body that was already read.
 */
export function mountBoard(app: NestExpressApplication, gate: Gate, bodies: RequestHandler): void {
  let board: Promise<RequestHandler> | undefined;
  const lazy: RequestHandler = (request, response, next) => {
    board ??= loadBoard(app);
    board.then((handle) => void handle(request, response, next), next);
  };
  app.use(boardPath, gate.admin, bodies, contentPolicy, lazy, notFound);
}

async function loadBoard(app: NestExpressApplication): Promise<RequestHandler> {
  const [{ createBullBoard }, { BullMQAdapter }, { ExpressAdapter }] = await Promise.all([
    import('@bull-board/api'),
    import('@bull-board/api/bullMQAdapter'),
    import('@bull-board/express'),
  ]);
  const adapter = new ExpressAdapter();
  const { base } = app.get(PublicUrl);
  // The path as browsers see it: a proxy removed the path prefix of the base URL from the request.
  adapter.setBasePath(new URL(base).pathname.replace(/\/$/, '') + boardPath);
  const taskAdapter = { externalJobUrl: ({ data }: { data: unknown }) => taskLink(base, data) };
  const aboutTasks: readonly string[] = [jobs['task.execute'].queue, jobs['webhook.deliver'].queue];
  const queues = Object.values(jobs).map(
    ({ queue }) =>
      new BullMQAdapter(
        app.get<Queue>(getQueueToken(queue), { strict: false }),
        aboutTasks.includes(queue) ? taskAdapter : {},
      ),
  );
  createBullBoard({ queues, serverAdapter: adapter, options: { uiConfig: { boardTitle: 'Rialto queues' } } });
  adapter.setErrorHandler(boardError);
  return (adapter.getRouter() as Express).disable('x-powered-by');
}

/** Links a job to its task, or to the list of tasks when it has several tasks or push configurations. */
function taskLink(base: string, data: unknown): { displayText: string; href: string } {
  const { taskId, taskIds, configs } = (data ?? {}) as { taskId?: unknown; taskIds?: unknown; configs?: unknown };
  const href = `${base}/api/a2a/tasks`;
  if (Array.isArray(taskIds)) return { displayText: `${taskIds.length} tasks`, href };
  if (Array.isArray(configs)) return { displayText: `${configs.length} configurations`, href };
  return { displayText: 'Task', href: `${href}/${encodeURIComponent(String(taskId))}` };
}

/** An error in the board's format, without the stack that the board would show in development. */
function boardError(error: Error & { statusCode?: number }) {
  const key = 'ERRORS.INTERNAL_SERVER_ERROR';
  return { status: (error.statusCode ?? 500) as 500, body: { error: { key }, message: error.message } };
}

function notFound(request: Request, response: Response): void {
  sendProblem(request as unknown as DoorRequest, response, 'not_found');
}
