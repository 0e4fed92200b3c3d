import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { UnreadAnswers } from './unread-answers.js';

describe('answers that their clients have not read', () => {
  class Answer extends EventEmitter {
    destroyed = false;
    readonly req: object;

    constructor(
      org: string,
      id: string,
      readonly writableLength = 10,
    ) {
      super();
      this.req = { ctx: { org: { id: org }, principal: { kind: 'user', id } } };
    }

    destroy(): void {
      this.destroyed = true;
      this.emit('close');
    }
  }

  it('closes the oldest answers of the principal or org over its limit, and no others', () => {
    const answers = new UnreadAnswers(3_600_000, { principal: 25, org: 45, process: 95 });
    const watched = (org: string, id: string): Answer => {
      const answer = new Answer(org, id);
      answers.watchAnswer(answer as unknown as ServerResponse);
      return answer;
    };
    const other = watched('b', 'bob');
    const alice = [watched('a', 'alice'), watched('a', 'alice'), watched('a', 'alice')];
    expect(alice.map(({ destroyed }) => destroyed)).toEqual([true, false, false]);
    const more = [watched('a', 'carol'), watched('a', 'carol'), watched('a', 'dave')];
    expect([...alice.slice(1), ...more].map(({ destroyed }) => destroyed)).toEqual([true, false, false, false, false]);
    expect(other.destroyed).toBe(false);
    alice[2]!.destroy();
    expect([watched('a', 'eve'), ...more].map(({ destroyed }) => destroyed)).toEqual([false, false, false, false]);
    for (const org of ['c', 'd', 'e']) for (const id of ['x', 'y']) watched(org, id);
    expect(other.destroyed).toBe(true);
  });
});
