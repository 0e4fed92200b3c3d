import { setTimeout as wait } from 'node:timers/promises';
import { Gate, messagesOf, reportUntilHeard, stepsAfter, type Wire } from './outside-work.js';

/** An agent without an address: it leases tasks from its mailbox in a loop, and does the work of outside-work.ts. */
export class MailboxWorker {
  readonly leases: Wire[] = [];
  /** The answers of the gateway to its reports. */
  readonly heard: { status: number; body: any }[] = [];
  readonly gate = new Gate();
  /** While true, the worker leases no tasks. */
  isAsleep = false;
  private readonly leaving = new AbortController();
  private readonly looping: Promise<void>;

  constructor(
    private readonly at: { url: string; token: string },
    private readonly agent: string,
  ) {
    this.looping = this.loop();
  }

  async close(): Promise<void> {
    this.leaving.abort();
    this.gate.open();
    await this.looping;
  }

  private async loop(): Promise<void> {
    while (!this.leaving.signal.aborted) {
      const lease = this.isAsleep ? await wait(50) : await this.lease();
      if (!lease) continue;
      this.leases.push(lease);
      void this.work(lease);
    }
  }

  private async lease(): Promise<Wire | undefined> {
    const { url, token } = this.at;
    try {
      const response = await fetch(`${url}/api/mailbox/${this.agent}/lease?waitMs=1000`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        signal: this.leaving.signal,
      });
      if (response.status === 200) return (await response.json()) as Wire;
      if (response.status !== 204) await wait(100);
    } catch {
      await wait(100);
    }
    return undefined;
  }

  private async work({ task, leaseEpoch }: Wire): Promise<void> {
    const url = `${this.at.url}/api/executions/${task.id}/events`;
    for (const [index, step] of stepsAfter(messagesOf(task)).entries()) {
      if (step === 'wait') await this.gate.passed;
      else {
        const event = { ...step, id: `${leaseEpoch}-${index}`, leaseEpoch };
        this.heard.push(await reportUntilHeard({ url, token: this.at.token, event }));
      }
    }
  }
}
