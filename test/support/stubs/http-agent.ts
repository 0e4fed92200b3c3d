import { TaskRunner } from '../../../src/tasks/run/task.runner.js';
import { publish, rpc, userMessage } from '../clients/a2a.js';
import { eventually } from '../gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../gateway/gateway.js';
import { HttpService, type ServiceCall } from './http-service.js';
import { readEvents } from '../gateway/event-rows.js';

/**
 * A gateway with the agents `svc` and `other`. Their executor is an HTTP service that accepts every call with 202 and
 * reports nothing by itself.
 */
export class HttpAgent {
  static readonly agent = 'svc';

  private constructor(
    readonly gateway: TestGateway,
    readonly service: HttpService,
    /** The secret that signs the calls to `svc`. */
    readonly secret: string,
  ) {}

  static async start(): Promise<HttpAgent> {
    const gateway = await startTestGateway();
    const service = await HttpService.start();
    const executor = { kind: 'http', url: service.url };
    const { secret } = await publish(gateway, { name: HttpAgent.agent, executor });
    await publish(gateway, { name: 'other', executor });
    return new HttpAgent(gateway, service, secret);
  }

  /** Restores the initial state for the next test. */
  reset(): void {
    this.service.calls.length = 0;
    this.service.answer = () => ({ status: 202 });
  }

  async close(): Promise<void> {
    await this.service.close();
    await this.gateway.close();
  }

  async send(text: string, more: Record<string, unknown> = {}): Promise<any> {
    const message = userMessage(text, more);
    return (await rpc(this.gateway, 'SendMessage', { message }, HttpAgent)).task;
  }

  taskWhen(id: string, state: string): Promise<any> {
    return eventually(
      () => rpc(this.gateway, 'GetTask', { id }, HttpAgent),
      (task: any) => task.status.state === state,
    );
  }

  /** Sends a message and waits until the service has received the task. The task is not answered yet. */
  async given(text = 'x', more: Record<string, unknown> = {}): Promise<{ id: string; call: ServiceCall }> {
    const configuration = { returnImmediately: true };
    const { task } = await rpc(
      this.gateway,
      'SendMessage',
      { message: userMessage(text, more), configuration },
      HttpAgent,
    );
    const call = await eventually(
      () => this.service.calls.find(({ headers }) => headers['webhook-id'] === `${task.id}-1`),
      (found) => found !== undefined,
    );
    await eventually(
      () =>
        this.gateway.sql('select from a2a_tasks where id = $1 and lease_until is null and next_at > now()', [task.id]),
      ({ length }) => length === 1,
    );
    await this.left(task.id); // the run has committed all its events
    return { id: task.id as string, call: call! };
  }

  /** Waits until the process that runs the task learns that another process continues it. */
  left(id: string): Promise<boolean> {
    const { active } = this.gateway.gateway.get(TaskRunner) as unknown as { active: Map<string, unknown> };
    return eventually(
      () => active.has(id),
      (isActive) => !isActive,
    );
  }

  report({ body }: ServiceCall, event: unknown, token: string | null = body.token) {
    return this.gateway.call('POST', new URL(body.callbackUrl).pathname, event, token);
  }

  eventsOf(id: string): Promise<any[]> {
    return readEvents(this.gateway.sql, id);
  }
}
