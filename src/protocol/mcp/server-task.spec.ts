import type { JsonObject } from '../../kernel/json.js';
import { declaresTasks, readServerTask, tasksExtension } from './server-task.js';

describe('the task of an MCP server', () => {
  const facts = { taskId: 't', createdAt: '2026-08-01T00:00:00Z', lastUpdatedAt: '2026-08-01T00:00:00Z', ttlMs: null };

  it('is read with the members that the gateway needs', () => {
    expect(readServerTask({ ...facts, status: 'working', statusMessage: 'on it', pollIntervalMs: 5 })).toEqual({
      ...{ taskId: 't', status: 'working', statusMessage: 'on it', pollIntervalMs: 5 },
    });
    const error = { code: -32_603, message: 'no' };
    expect(readServerTask({ ...facts, status: 'failed', error })).toEqual({ taskId: 't', status: 'failed', error });
    const odd = {
      ...facts,
      status: 'completed',
      result: 'text',
      inputRequests: [],
      pollIntervalMs: -1,
      statusMessage: '',
    };
    expect(readServerTask(odd)).toEqual({ taskId: 't', status: 'completed' });
  });

  it('is invalid without an id and a status of the extension', () => {
    for (const bad of [
      {},
      { taskId: 7, status: 'working' },
      { taskId: '', status: 'working' },
      { taskId: 'a\u0000', status: 'working' },
      { taskId: '\ud800', status: 'working' },
      { taskId: 't' },
    ] as JsonObject[])
      expect(() => readServerTask(bad)).toThrow('no valid taskId');
    expect(() => readServerTask({ taskId: 't', status: 'submitted' })).toThrow('no valid taskId');
    expect(() => readServerTask({ taskId: 'x'.repeat(1_025), status: 'working' })).toThrow('no valid taskId');
  });

  it('is for peers that declare the extension', () => {
    expect(declaresTasks({ extensions: { [tasksExtension]: {} } })).toBe(true);
    for (const capabilities of [
      {},
      { extensions: {} },
      { extensions: [] },
      { extensions: { [tasksExtension]: true } },
    ] as JsonObject[])
      expect(declaresTasks(capabilities)).toBe(false);
  });
});
