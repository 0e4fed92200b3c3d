import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Caller } from './caller.js';
import { canaryOfBeta, type Scene } from './scene.js';

type Wire = Record<string, any>;

/** One kind of request, with its share in percent. */
interface Habit {
  readonly share: number;
  readonly act: (load: Load) => Promise<unknown>;
}

const habits: readonly Habit[] = [
  { share: 14, act: (load) => load.alpha.send({ ...load.keyed(), agent: 'echo', wait: true, echoes: true }) },
  { share: 14, act: (load) => load.alpha.send({ ...load.keyed(), agent: 'slow', echoes: true }) },
  { share: 10, act: (load) => load.alpha.send({ ...load.keyed(), agent: 'slow', wait: true, echoes: true }) },
  { share: 12, act: (load) => load.readerThatLeaves() },
  { share: 10, act: (load) => load.withReceiver() },
  { share: 8, act: (load) => load.question() },
  { share: 8, act: (load) => load.cancel() },
  { share: 6, act: (load) => load.alpha.send({ ...load.keyed(), agent: 'http' }) },
  { share: 6, act: (load) => load.alpha.send({ ...load.keyed(), agent: 'box' }) },
  { share: 6, act: (load) => load.alpha.send({ ...load.keyed(load.times()), agent: 'remote' }) },
  { share: 3, act: (load) => load.tool() },
  { share: 3, act: (load) => load.neighbour() },
];

/** A number of concurrent callers of every kind that run until they are stopped. */
export class Load {
  readonly alpha: Caller;
  private readonly beta: Caller;
  private stopping = false;
  private isOver = false;
  private readonly loops: Promise<void>[] = [];
  private readonly holders: Promise<void>[];
  private number = 0;

  constructor(
    private readonly scene: Scene,
    callers: number,
    private readonly pauseMs = 120,
  ) {
    ({ alpha: this.alpha, beta: this.beta } = scene.callers);
    for (let index = 0; index < callers; index++) this.loops.push(this.loop());
    this.holders = [this.holder(), this.holder()];
  }

  /** Resolves when every caller has received its last answer. */
  async stop(): Promise<void> {
    this.stopping = true;
    const over = Promise.all(this.loops);
    await Promise.race([over, sleep(100_000, undefined, { ref: false })]);
    this.alpha.isOver = this.beta.isOver = true;
    await over;
  }

  /** Stops the workers of the mailbox. */
  async close(): Promise<void> {
    this.isOver = true;
    await Promise.all(this.holders);
  }

  /** Returns a new message with a unique key. */
  keyed(words = ''): { key: string; payload: string } {
    return {
      key: randomUUID(),
      payload: `number ${++this.number} ${words}the quick brown fox ${randomUUID().slice(0, 8)}`,
    };
  }

  times(): string {
    const { random } = this.scene;
    return `answer=${random.whole(400)} work=${random.whole(2_500)} `;
  }

  private async loop(): Promise<void> {
    const { random } = this.scene;
    while (!this.stopping) {
      let point = random.whole(100);
      const habit = habits.find(({ share }) => (point -= share) < 0) ?? habits[0]!;
      await habit.act(this);
      await sleep(random.whole(2 * this.pauseMs));
    }
  }

  /** Disconnects in the middle and resumes with the number of the last event. */
  readerThatLeaves(): Promise<unknown> {
    const { random } = this.scene;
    const options = { ...this.keyed(), agent: 'slow', wait: true, echoes: true };
    return this.alpha.stream(options, random.chance(0.6) ? 1 + random.whole(6) : Infinity);
  }

  withReceiver(): Promise<unknown> {
    const kind = this.scene.random.pick(['fast', 'slow', 'flaky']);
    return this.alpha.send({ ...this.keyed(), agent: 'slow', push: this.scene.pushTo(`${kind}/${randomUUID()}`) });
  }

  async question(): Promise<void> {
    const { random } = this.scene;
    const taskId = await this.alpha.send({ ...this.keyed(), agent: 'asks', wait: true });
    if (taskId === undefined) return;
    const answer = { ...this.keyed(), agent: 'asks', taskId, wait: random.chance(0.5) };
    if (!random.chance(0.3)) return void (await this.alpha.send(answer));
    const other = { ...this.keyed(), agent: 'asks', taskId, wait: true };
    await Promise.all([this.alpha.send(answer), this.alpha.send(other)]);
  }

  async cancel(): Promise<void> {
    const { random } = this.scene;
    const agent = random.pick(['long', 'slow', 'remote']);
    const taskId = await this.alpha.send({ ...this.keyed(agent === 'remote' ? this.times() : ''), agent });
    if (taskId === undefined) return;
    await sleep(random.whole(1_200));
    const [one, two] = [await this.alpha.door(), await this.alpha.door()];
    await Promise.all([this.alpha.cancel(one, agent, taskId), this.alpha.cancel(two, agent, taskId)]);
    await this.alpha.check(agent, taskId);
  }

  /** Calls an MCP tool with a slow remote agent: the gateway continues the call as a task. */
  async tool(): Promise<void> {
    const call = { name: 'far_away.work', arguments: { payload: this.keyed(this.times()).payload } };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call };
    await this.alpha.call(await this.alpha.door(), 'POST', '/mcp', body);
  }

  /** Creates a secret in another org, and checks that the first org cannot access it. */
  async neighbour(): Promise<void> {
    const { payload, key } = this.keyed();
    const taskId = await this.beta.send({ agent: 'echo', payload: `${canaryOfBeta} ${payload}`, key, wait: true });
    if (taskId === undefined) return;
    const door = await this.alpha.door();
    const answers = [
      await this.alpha.rpc(door, 'echo', 'GetTask', { id: taskId }),
      await this.alpha.rpc(door, 'echo', 'CancelTask', { id: taskId }),
      await this.alpha.rpc(door, 'forbidden', 'SendMessage', {
        message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: payload }] },
      }),
    ];
    const [seen, canceled, sent] = answers.map((answer) => answer?.body.result !== undefined);
    const { forbidden } = this.scene.history;
    forbidden.push({ what: 'a task of another org was seen', happened: seen === true });
    forbidden.push({ what: 'a task of another org was canceled', happened: canceled === true });
    forbidden.push({ what: 'an act that a policy forbids was done', happened: sent === true });
    await this.alpha.rpc(door, 'echo', 'ListTasks', { pageSize: 20 });
  }

  /** An external worker that leases tasks from the mailbox and reports on them. */
  private async holder(): Promise<void> {
    while (!this.isOver) {
      const door = await this.alpha.door();
      const lease = await this.alpha.call(door, 'POST', '/api/mailbox/box/lease?waitMs=300');
      if (lease?.status === 200) await this.work(lease.body);
      else await sleep(100);
    }
  }

  private async work({ task, leaseEpoch: epoch, message }: Wire): Promise<void> {
    const { history, random } = this.scene;
    history.leases.push({ taskId: task.id, epoch, at: Date.now() });
    await sleep(random.whole(300));
    const artifact = { artifactId: 'answer', parts: message.parts as unknown };
    const steps = [
      { type: 'artifact', artifact },
      { type: 'complete', text: 'done' },
    ];
    for (const [index, step] of steps.entries())
      await this.report(task.id, epoch, { ...step, id: `${epoch}-${index}`, leaseEpoch: epoch });
  }

  private async report(taskId: string, epoch: number, event: Wire): Promise<void> {
    for (let tries = 0; tries < 100; tries++) {
      const at = Date.now();
      const answer = await this.alpha.call(await this.alpha.door(), 'POST', `/api/executions/${taskId}/events`, event);
      if (answer && answer.status < 500)
        return void this.scene.history.reports.push({ taskId, epoch, at, accepted: answer.status < 300 });
      await sleep(100);
    }
  }
}
