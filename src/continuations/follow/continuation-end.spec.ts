import { endTold, type EndFacts } from './continuation-end.js';

describe('the end of remote work, as it is told here', () => {
  const facts = { who: 'agent a', isEmpty: true, requestId: 'r', continuationId: 'c', taskId: 't' } as EndFacts;
  const told = (state: 'TASK_STATE_CANCELED' | 'TASK_STATE_FAILED') =>
    endTold(
      { status: { state, message: { parts: [{ text: 'no' }], metadata: { errorCode: 'denied', kept: 1 } } } },
      facts,
    ).status.message!.metadata;

  it('has its meaning from us, whatever the remote calls it', () => {
    expect(told('TASK_STATE_CANCELED')).toEqual({ kept: 1 });
    expect(told('TASK_STATE_FAILED')).toMatchObject({ errorCode: 'remote_task_failed', kept: 1 });
  });
});
