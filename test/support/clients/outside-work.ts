import { setTimeout as wait } from 'node:timers/promises';

export type Wire = Record<string, any>;

/** What a worker outside does next: an event, or nothing until the test lets it go on. */
export type Step = Wire | 'wait';

const chunk = (text: string, append: boolean, lastChunk: boolean): Wire => {
  return { type: 'artifact', artifact: { artifactId: 'answer', parts: [{ text }] }, append, lastChunk };
};

/**
 * A worker's whole mind: what it does when a task has these messages of its caller, the first of which names the scenario. The
 * same for a service, for whoever leases from a mailbox, and for an agent of the SDK.
 */
export function stepsAfter(messages: readonly Wire[]): Step[] {
  const [first = '', ...answers] = messages.map(({ parts }) => textOf(parts));
  switch (first) {
    case 'stream':
      return [
        chunk('one ', false, false),
        chunk('two ', true, false),
        chunk('three', true, true),
        { type: 'complete' },
      ];
    case 'ask':
      if (answers.length === 0)
        return [
          { type: 'progress', text: 'thinking' },
          { type: 'ask', text: 'Which colour?' },
        ];
      if (answers.length === 1) return [{ type: 'ask', text: 'Which size?' }];
      return [{ type: 'complete', text: answers.join(' and ') }];
    case 'fail':
      return [{ type: 'fail', error: 'the printer is on fire' }];
    case 'wait':
      return [chunk('begun', false, true), 'wait', { type: 'complete', text: 'late' }];
    case 'file': {
      const parts = messages[0]!.parts.filter((part: Wire) => part.text === undefined);
      return [{ type: 'artifact', artifact: { artifactId: 'file', parts } }, { type: 'complete' }];
    }
    default:
      return [
        { type: 'artifact', artifact: { artifactId: 'answer', parts: [{ text: `did ${first}` }] } },
        { type: 'complete', text: 'done' },
      ];
  }
}

function textOf(parts: readonly Wire[]): string {
  return parts.find(({ text }) => text !== undefined)?.text ?? '';
}

/** The messages of its caller in a task of v1.0. */
export function messagesOf(task: Wire): Wire[] {
  return (task.history as Wire[]).filter(({ role }) => role === 'ROLE_USER');
}

/** Holds workers at their `wait` until the test opens it. */
export class Gate {
  private opened!: () => void;
  readonly passed = new Promise<void>((resolve) => (this.opened = resolve));

  open(): void {
    this.opened();
  }
}

export interface Report {
  readonly url: string;
  readonly token: string;
  readonly event: Wire;
}

/** Reports until the gateway has heard it, for it may be down just now; what it says to that. */
export async function reportUntilHeard({ url, token, event }: Report): Promise<{ status: number; body: any }> {
  for (;;) {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(event),
      });
      if (response.status < 500) return { status: response.status, body: await response.json() };
    } catch {
      // nobody there
    }
    await wait(100);
  }
}
