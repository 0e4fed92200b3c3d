import { decode } from './decode.js';

const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }] };

function decoded(method: string, params: unknown) {
  const result = decode(method, params);
  if (!result.ok) throw new Error(result.message);
  return result;
}

describe('params as ProtoJSON writes them', () => {
  it('(C21) treats default values of the proto as absent', () => {
    const printed = { contextId: '', taskId: '', metadata: {}, extensions: [], referenceTaskIds: [] };
    const push = { tenant: '', id: '', taskId: '', url: 'https://a.example/hook', token: '' };
    const { operation, tenant } = decoded('SendMessage', {
      tenant: '',
      message: { ...message, ...printed, role: 1, parts: [{ text: 'hello', filename: '', mediaType: '' }] },
      configuration: {
        acceptedOutputModes: [],
        returnImmediately: false,
        historyLength: '7',
        taskPushNotificationConfig: { ...push, authentication: { scheme: '', credentials: '' } },
      },
      metadata: {},
    });
    expect(tenant).toBeUndefined();
    expect(operation.params).toEqual({
      message: { ...message, metadata: {} },
      historyLength: 7,
      metadata: {},
      pushConfig: { url: 'https://a.example/hook', format: 'v1' },
    });
  });

  it('(C21) accepts enums as numbers and numbers as text, as ProtoJSON parsers do', () => {
    const { params } = decoded('ListTasks', { status: 2, pageSize: '10', historyLength: '0' }).operation;
    expect(params).toMatchObject({ status: 'TASK_STATE_WORKING', pageSize: 10, historyLength: 0 });
    expect(decoded('ListTasks', { status: '3' }).operation.params).toMatchObject({ status: 'TASK_STATE_COMPLETED' });
    for (const status of [0, '0', ''])
      expect(decoded('ListTasks', { status }).operation.params).not.toHaveProperty('status');
  });
});
