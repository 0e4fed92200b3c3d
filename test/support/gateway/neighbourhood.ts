import { join } from 'node:path';
import { openStream, publish, rpc, rpcStream, userMessage } from '../clients/a2a.js';
import { eventually } from './eventually.js';
import { becomesReady, startTestGateway, type TestGateway } from './gateway.js';
import { startStubAgent } from '../stubs/stub-agent.js';
import { TestUpstream } from '../stubs/upstream.js';
import { startWebhookSink, type WebhookSink } from '../stubs/webhook-sink.js';

/** An activity of a misbehaving neighbour that runs until it is ended. */
export interface Misdeed {
  /** Number of operations in progress: waiting calls, open connections or rows that are being processed. */
  pending(): number | Promise<number>;
  end?(): unknown;
}

const script = join(process.cwd(), 'test', 'support', 'stubs', 'stdio-upstream.mjs');
const completed = 'TASK_STATE_COMPLETED';

/**
 * One org with a well-behaved member, `alice`, who uses all shared parts of the org, and a misbehaving one, `mallory`.
 */
export class Neighbourhood {
  private readonly opened: { close(): Promise<unknown> }[] = [];
  private taken = 0;

  private constructor(
    readonly gateway: TestGateway,
    readonly alice: string,
    /** Token of a member who may register servers and agents, and store policies. */
    readonly mallory: string,
    private readonly sink: WebhookSink,
  ) {}

  static async start(env: Record<string, string> = {}): Promise<Neighbourhood> {
    const gateway = await startTestGateway(env);
    const [alice, mallory] = [
      await gateway.tokenOf('default', 'alice'),
      await gateway.tokenOf('default', 'mallory', 'admin'),
    ];
    const one = new Neighbourhood(gateway, alice, mallory, await startWebhookSink());
    one.opened.push(one.sink);
    try {
      await one.settle();
    } catch (error) {
      await one.close();
      throw error;
    }
    return one;
  }

  /** Closes `one` together with the gateway. */
  keep<Closable extends { close(): Promise<unknown> }>(one: Closable): Closable {
    this.opened.push(one);
    return one;
  }

  /** Returns a name that no other misdeed uses. */
  name(prefix = 'bad'): string {
    return `${prefix}${(this.taken += 1)}`;
  }

  /** Runs all kinds of work of a well-behaved member at the same time, and checks that each completes. */
  async theOthers(): Promise<void> {
    await Promise.all([
      this.sends(),
      this.streams(),
      this.followsTasks(),
      this.isNotified(),
      this.lists(),
      this.calls('good__echo', { text: 'fine' }, 'fine'),
      this.calls('program__echo', { text: 'fine' }, 'fine'),
      this.calls('good_agent.work', { n: 1 }, '"ok":true'),
      becomesReady(this.gateway),
    ]);
  }

  /** Checks that the work of `alice` completes while the misdeed is in progress, and again after it has ended. */
  async proves(misdeed: Misdeed): Promise<void> {
    try {
      await eventually(
        () => misdeed.pending(),
        (count) => count > 0,
      );
      await this.theOthers();
      expect(await misdeed.pending()).toBeGreaterThan(0);
    } finally {
      await misdeed.end?.();
    }
    await this.theOthers();
  }

  /** Registers a server or an agent of `mallory` and returns its name. */
  async register(kind: 'agent' | 'server', body: object): Promise<string> {
    const name = this.name();
    const [path, id] = kind === 'agent' ? ['/api/a2a/agents', 'slug'] : ['/api/mcp/servers', 'id'];
    const { status, body: answer } = await this.gateway.call('POST', path, { [id]: name, ...body }, this.mallory);
    expect([status, answer]).toEqual([201, expect.anything()]);
    return name;
  }

  /** Calls a tool of `mallory` repeatedly, and aborts the calls at the end. Checks that no call ever succeeds. */
  calling(tool: string, atOnce = 4): Misdeed {
    const { url } = this.gateway;
    const leaving = new AbortController();
    const answered: unknown[] = [];
    const headers = { authorization: `Bearer ${this.mallory}`, 'content-type': 'application/json' };
    const params = { name: tool, arguments: {} };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const loop = again(async () => {
      const response = await fetch(`${url}/mcp`, { method: 'POST', headers, body, signal: leaving.signal });
      const { error, ...answer } = (await response.json()) as { error?: unknown; result?: { isError?: boolean } };
      if (!error && !answer.result?.isError) answered.push(answer);
    }, atOnce);
    const end = async (): Promise<void> => {
      const over = loop.end!();
      leaving.abort();
      await over;
      expect(answered).toEqual([]);
    };
    return { ...loop, end };
  }

  async close(): Promise<void> {
    await this.gateway.close();
    await Promise.all(this.opened.splice(0).map((one) => one.close()));
  }

  private async settle(): Promise<void> {
    await publish(this.gateway, { executor: { kind: 'echo', chunks: 3 } });
    await publish(this.gateway, { name: 'asking', executor: { kind: 'echo', ask: 'Really?' } });
    const upstream = this.keep(await TestUpstream.start());
    const stub = this.keep(await startStubAgent({ name: 'Good' }));
    const program = { id: 'program', command: process.execPath, args: [script] };
    for (const [path, body] of [
      ['/api/mcp/servers', { id: 'good', url: upstream.url }],
      ['/api/mcp/servers', program],
      ['/api/a2a/agents', { url: stub.url, slug: 'good_agent' }],
    ] as const) {
      const answer = await this.gateway.call('POST', path, body);
      if (answer.status !== 201) throw new Error(`not registered: ${JSON.stringify(answer.body)}`);
    }
    await this.theOthers();
  }

  private get asAlice() {
    return { token: this.alice };
  }

  private async sends(): Promise<void> {
    const { task } = await rpc(this.gateway, 'SendMessage', { message: userMessage('a word') }, this.asAlice);
    expect(task.status.state).toBe(completed);
    expect(task.artifacts[0].parts.map(({ text }: { text: string }) => text).join('')).toBe('a word');
  }

  private async streams(): Promise<void> {
    const params = { message: userMessage('one two three') };
    const frames = await (await rpcStream(this.gateway, 'SendStreamingMessage', params, this.asAlice)).rest();
    expect(frames[0]?.data.result.task).toBeDefined();
    expect(frames.at(-1)?.data.result.statusUpdate?.status.state).toBe(completed);
  }

  /** Sends a message, and answers the agent only when both readers follow the task. */
  private async followsTasks(): Promise<void> {
    const { gateway } = this;
    const agent = { ...this.asAlice, agent: 'asking' };
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x') }, agent);
    const subscribed = await rpcStream(gateway, 'SubscribeToTask', { id: task.id }, agent);
    const events = await openStream(`${gateway.url}/a2a/tasks/${task.id}/events`, { ...this.asAlice, method: 'GET' });
    expect([subscribed.status, events.status]).toEqual([200, 200]);
    await subscribed.next();
    const [rest, all] = [subscribed.rest(), events.rest()];
    await rpc(gateway, 'SendMessage', { message: userMessage('yes', { taskId: task.id }) }, agent);
    expect((await rest).at(-1)?.data.result.statusUpdate?.status.state).toBe(completed);
    expect(JSON.stringify(await all)).toMatch(/completed/i);
  }

  /** Sends a task through the queue and waits for the webhook post with its final state. */
  async isNotified(): Promise<void> {
    const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: this.sink.url } };
    const { task } = await rpc(
      this.gateway,
      'SendMessage',
      { message: userMessage('x'), configuration },
      { ...this.asAlice },
    );
    await eventually(
      () => this.sink.received.filter(({ body }) => body.statusUpdate?.taskId === task.id),
      (posts) => posts.some(({ body }) => body.statusUpdate.status.state === completed),
    );
  }

  private async lists(): Promise<void> {
    const { status, body } = await this.gateway.call('GET', '/api/a2a/agents?limit=100', undefined, this.alice);
    const goodAgent = expect.objectContaining({ slug: 'good_agent' });
    expect({ ...body, status }).toMatchObject({ status: 200, items: expect.arrayContaining([goodAgent]) });
    const names: string[] = [];
    for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
      const { result } = await this.gateway.rpc('tools/list', cursor ? { cursor } : {}, this.alice);
      names.push(...result.tools.map(({ name }: any) => name));
      cursor = result.nextCursor;
    }
    expect(names).toEqual(expect.arrayContaining(['good__echo', 'program__echo']));
  }

  private async calls(name: string, args: object, said: string): Promise<void> {
    const { result } = await this.gateway.rpc('tools/call', { name, arguments: args }, this.alice);
    expect([name, JSON.stringify(result?.content ?? null).replaceAll('\\', '')]).toEqual([
      name,
      expect.stringContaining(said),
    ]);
  }
}

/** Repeats `act` in `atOnce` parallel loops until it is ended. Errors of `act` are ignored. */
export function again(act: () => Promise<unknown>, atOnce = 4): Misdeed {
  let [pending, isOver] = [0, false];
  const one = async (): Promise<void> => {
    pending += 1;
    while (!isOver) await act().catch(() => undefined);
    pending -= 1;
  };
  const all = Array.from({ length: atOnce }, one);
  return {
    pending: () => pending,
    end: () => {
      isOver = true;
      return Promise.all(all);
    },
  };
}

/** Creates a misdeed from calls that wait for their answers. */
export function waits(calls: readonly Promise<unknown>[]): Misdeed {
  let pending = calls.length;
  for (const call of calls) void call.catch(() => undefined).finally(() => (pending -= 1));
  return { pending: () => pending };
}
