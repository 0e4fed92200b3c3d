import { nextHealth, refreshDelay, type HealthState } from './health.js';

describe('health of an agent', () => {
  const fresh: HealthState = { health: 'unknown', failures: 0 };

  it('stays unknown while the first two attempts fail', () => {
    const once = nextHealth(fresh, 'unreachable', false);
    const twice = nextHealth(once, 'unreachable', false);
    expect([once, twice, nextHealth(twice, 'unreachable', false)].map(({ health }) => health)).toEqual([
      'unknown',
      'unknown',
      'unreachable',
    ]);
  });

  it('RE-55 walks through all four states', () => {
    const healthy = nextHealth(fresh, 'ok', false);
    const once = nextHealth(healthy, 'unreachable', false);
    const twice = nextHealth(once, 'unreachable', false);
    const thrice = nextHealth(twice, 'unreachable', false);
    expect([fresh, healthy, once, twice, thrice].map(({ health }) => health)).toEqual([
      'unknown',
      'healthy',
      'degraded',
      'degraded',
      'unreachable',
    ]);
    expect(nextHealth(thrice, 'ok', false)).toEqual({ health: 'healthy', failures: 0 });
  });

  it('RE-59 uses the result of a manual attempt at once', () => {
    expect(nextHealth({ health: 'healthy', failures: 0 }, 'unreachable', true).health).toBe('unreachable');
  });

  it('RE-55 keeps an agent unreachable while background refreshes fail after a manual one', () => {
    const asked = nextHealth({ health: 'healthy', failures: 0 }, 'unreachable', true);
    expect(nextHealth(asked, 'unreachable', false)).toEqual({ health: 'unreachable', failures: 2 });
  });

  it('reports an agent with a broken card as degraded, after any number of failures', () => {
    expect(nextHealth({ health: 'degraded', failures: 9 }, 'invalid', true).health).toBe('degraded');
  });

  it('E19 reports an agent as degraded when its card is available and its calls fail', () => {
    expect(nextHealth({ health: 'unreachable', failures: 9 }, 'failing', false)).toEqual({
      health: 'degraded',
      failures: 0,
    });
  });

  it('E19 backs off with every failure, up to ten minutes, with jitter', () => {
    const delays = [1, 2, 3, 30].map((failures) => refreshDelay(failures, 300, 0.5));
    expect(delays).toEqual([30, 60, 120, 600]);
    expect(refreshDelay(0, 300, 0)).toBeCloseTo(240);
    expect(refreshDelay(0, 300, 0.999)).toBeCloseTo(360, 0);
  });
});
