import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway } from '../../support/gateway/gateway.js';
import { askAgain, closeRemotes, continuationOf, quick, startRemote } from '../../support/clients/remote-work.js';
import { data, never } from '../../support/stubs/stub-behaviours.js';
import { withoutTimers } from '../../support/gateway/timers.js';

afterAll(closeRemotes);

describe('the limits of remote work', () => {
  it('an end that the remote stream reports is stored before the next poll', async () => {
    const seldom = await startTestGateway({ ...quick, A2A_CONTINUATION_POLL_MS: '60000' });
    try {
      let end: (() => void) | undefined;
      const one = await startRemote(seldom, never);
      one.agent.set(async (it) => {
        it.openStream();
        await it.emit({ task: 'working' });
        await new Promise<void>((resolve) => (end = resolve));
        await it.emit({ status: 'completed', parts: [{ text: 'told' }] });
        it.response.end();
      }, 'subscribe');
      const { taskId } = await one.handed();
      await eventually(
        () => end,
        (ready) => ready !== undefined,
      );
      end!();
      expect((await askAgain(seldom, taskId)).result.content[0].text).toBe('told');
    } finally {
      await seldom.close();
    }
  });

  it.each([
    [
      'A2A_CONTINUATION_MAX_REMOTE_WORK_MS',
      { A2A_CONTINUATION_MAX_REMOTE_WORK_MS: '4000' },
      '4 seconds of remote work',
    ],
    ['A2A_CONTINUATION_MAX_ATTEMPTS', { A2A_CONTINUATION_MAX_ATTEMPTS: '2' }, '2 attempts'],
  ])('AN-66 work that never ends fails at %s, once, and its remote agent is canceled', async (_, setting, limit) => {
    const bounded = await startTestGateway({ ...quick, ...setting });
    try {
      const one = await startRemote(bounded, never);
      const { taskId } = await one.handed();
      const { error } = await askAgain(bounded, taskId);
      expect(error.code).toBe(-32201);
      expect(error.message).toContain(
        `The agent ${one.slug} did not respond in time: it was still working after ${limit}`,
      );
      expect(await one.agent.waitForCancels()).toEqual(['stub-task-1']);
      expect(await continuationOf(bounded, taskId)).toMatchObject({ status: 'failed', next_at: null });
      const ends = await bounded.sql('select seq from a2a_task_events where task_id = $1 and terminal', [taskId]);
      expect(ends).toHaveLength(1);
    } finally {
      await bounded.close();
    }
  });

  it('a stopping process releases its remote work to other processes at once', async () => {
    const slow = { ...quick, A2A_CONTINUATION_PRECLAIM_WAIT_MS: '600000' };
    const first = await startTestGateway(slow);
    try {
      const one = await startRemote(first, never, { capabilities: { streaming: false } });
      const { taskId } = await one.handed();
      await withoutTimers(5_000, () => first.gateway.close()); // otherwise it would follow for ten minutes
      const [task] = await first.sql('select lease_owner, next_at from a2a_tasks where id = $1', [taskId]);
      expect(task.lease_owner).toBeNull();
      expect(task.next_at.getTime()).toBeLessThanOrEqual(Date.now());
      expect(one.agent.cancels).toEqual([]);
    } finally {
      await first.close();
    }
  });

  it('AN-68 a restart of all processes loses no answer, even a late one', async () => {
    const first = await startTestGateway({ ...quick, A2A_CONTINUATION_MAX_REMOTE_WORK_MS: '6000' });
    try {
      const one = await startRemote(first, never);
      const { taskId } = await one.handed();
      await first.gateway.close();
      one.agent.set(data({ settled: 'while we were away' }), 'get');
      await new Promise((resolve) => setTimeout(resolve, 6_100)); // longer than its time limit
      // There is one late poll, for which a process that has just started may need longer.
      const slower = { A2A_CONTINUATION_MAX_REMOTE_WORK_MS: '6000', A2A_CONTINUATION_POLL_TIMEOUT_MS: '8000' };
      const second = await startTestGateway({ ...quick, ...slower }, first);
      try {
        const { result } = await askAgain(second, taskId, first.token);
        expect(result.structuredContent).toEqual({ settled: 'while we were away' });
        expect(one.agent.requests.filter(({ operation }) => operation === 'send')).toHaveLength(1);
      } finally {
        await second.close();
      }
    } finally {
      await first.close();
    }
  });
});
