import { endTold, type EndFacts } from './continuation-end.js';

describe('endTold', () => {
  const facts = { who: 'agent a', isEmpty: true, requestId: 'r', continuationId: 'c', taskId: 't' } as EndFacts;
  const metadataOf = (state: 'TASK_STATE_CANCELED' | 'TASK_STATE_FAILED') =>
    endTold(
      { status: { state, message: { parts: [{ text: 'no' }], metadata: { errorCode: 'denied', kept: 1 } } } },
      facts,
    ).status.message!.metadata;

  it('replaces the error code of the remote agent with the code of the gateway', () => {
    expect(metadataOf('TASK_STATE_CANCELED')).toEqual({ kept: 1 });
    expect(metadataOf('TASK_STATE_FAILED')).toMatchObject({ errorCode: 'remote_task_failed', kept: 1 });
  });
});
