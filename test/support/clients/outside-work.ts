import { setTimeout as wait } from 'node:timers/promises';

export type Wire = Record<string, any>;

/** The next step of an external worker: an event to report, or `wait` until the test opens the gate. */
export type Step = Wire | 'wait';

const chunk = (text: string, append: boolean, lastChunk: boolean): Wire => {
  return { type: 'artifact', artifact: { artifactId: 'answer', parts: [{ text }] }, append, lastChunk };
};

/**
 * Returns the steps of a worker for the messages of a task. The first message names the scenario. A service, a mailbox
 * worker and an SDK agent all use these steps.
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

/** Returns the messages of the caller in a v1.0 task. */
export function messagesOf(task: Wire): Wire[] {
  return (task.history as Wire[]).filter(({ role }) => role === 'ROLE_USER');
}

/** Holds workers at their `wait` step until the test opens the gate. */
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

/**
 * Posts a report until the gateway accepts or refuses it, because the gateway may be down for a moment. Returns the
 * answer.
 */
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
      // the gateway is down; try again
    }
    await wait(100);
  }
}
