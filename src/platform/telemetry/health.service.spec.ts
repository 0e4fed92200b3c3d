import { HealthService, type HealthCheck } from './health.service.js';

const named = (name: string, run: HealthCheck['run']): HealthCheck => ({ name, run });

describe('HealthService', () => {
  it('has the status of its worst check', async () => {
    const health = new HealthService();
    health.add(named('fine', () => Promise.resolve({ status: 'ok' })));
    expect((await health.checkReadiness()).status).toBe('ok');
    health.add(named('slow', () => Promise.resolve({ status: 'degraded', detail: 'slow' })));
    expect((await health.checkReadiness()).status).toBe('degraded');
    health.add(named('gone', () => Promise.reject(new Error('a secret of the driver'))));
    expect(await health.checkReadiness()).toEqual({
      status: 'down',
      checks: {
        fine: { status: 'ok' },
        slow: { status: 'degraded', detail: 'slow' },
        gone: { status: 'down', detail: 'not reachable' },
      },
    });
  });

  it('is down while it stops', async () => {
    const health = new HealthService();
    health.drain();
    expect(await health.checkReadiness()).toEqual({
      status: 'down',
      checks: { process: { status: 'down', detail: 'stopping' } },
    });
  });

  it('does not wait for a check that never ends, and stays in service without an optional dependency', async () => {
    const health = new HealthService();
    health.add({ ...named('queue', () => new Promise(() => undefined)), unanswered: 'degraded' });
    expect((await health.checkReadiness()).status).toBe('degraded');
    health.add(named('database', () => new Promise(() => undefined)));
    expect(await health.checkReadiness()).toEqual({
      status: 'down',
      checks: {
        queue: { status: 'degraded', detail: 'no answer in time' },
        database: { status: 'down', detail: 'no answer in time' },
      },
    });
  });
});
