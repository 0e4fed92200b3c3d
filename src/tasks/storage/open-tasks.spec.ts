import { everybody, OpenTasks } from './open-tasks.js';

describe('open tasks', () => {
  const of = (org: string, sender = 'a member') => ({ org, sender: `${org} ${sender}` });
  const open = (orgs: OpenTasks, org: string, times: number, now = 0, sender?: string) => {
    for (let count = 0; count < times; count++) {
      if (orgs.reachedLimit(org, now)) continue;
      orgs.addUnstored(of(org, sender), now);
      orgs.arrived(of(org, sender));
    }
  };

  it('are accepted up to the limit of their org, and other orgs are not affected', () => {
    const orgs = new OpenTasks({ perOrg: 3, all: 100 });
    open(orgs, 'a', 3);
    expect([orgs.reachedLimit('a', 0), orgs.reachedLimit('b', 0)]).toEqual(['org', undefined]);
  });

  it('are accepted up to the limit of all orgs', () => {
    const orgs = new OpenTasks({ perOrg: 3, all: 4 });
    open(orgs, 'a', 2);
    open(orgs, 'b', 2);
    expect([orgs.reachedLimit('a', 0), orgs.reachedLimit('c', 0)]).toEqual(['all', 'all']);
  });

  it('are the last count plus those opened since', () => {
    const orgs = new OpenTasks({ perOrg: 10, all: 100 });
    open(orgs, 'a', 9);
    const { orgs: asked, applyCounts } = orgs.toCount(1);
    expect(asked).toEqual(['a']);
    open(orgs, 'a', 1);
    expect(orgs.reachedLimit('a', 1)).toBe('org');
    applyCounts(new Map([['a', 4]]));
    open(orgs, 'a', 4);
    expect(orgs.reachedLimit('a', 1)).toBeUndefined();
    open(orgs, 'a', 1);
    expect(orgs.reachedLimit('a', 1)).toBe('org');
  });

  it('stay counted until their rows are stored and a count can see them', () => {
    const orgs = new OpenTasks({ perOrg: 3, all: 100 });
    open(orgs, 'a', 1);
    orgs.addUnstored(of('a'), 0);
    orgs.addUnstored(of('a'), 0);
    const { applyCounts } = orgs.toCount(0);
    orgs.arrived(of('a'));
    applyCounts(new Map([['a', 1]]));
    expect(orgs.reachedLimit('a', 0)).toBe('org');
    orgs.arrived(of('a'));
    orgs.toCount(0).applyCounts(new Map([['a', 2]]));
    expect(orgs.reachedLimit('a', 0)).toBeUndefined();
  });

  it('free their place when they end, before and during the next count', () => {
    const orgs = new OpenTasks({ perOrg: 3, all: 100 });
    for (let round = 0; round < 10; round++) {
      open(orgs, 'a', 3);
      expect(orgs.reachedLimit('a', 0)).toBe('org');
      for (let each = 0; each < 3; each++) orgs.ended(of('a'));
    }
    open(orgs, 'a', 3);
    const { applyCounts } = orgs.toCount(0);
    for (let each = 0; each < 3; each++) orgs.ended(of('a'));
    applyCounts(new Map([['a', 3]]));
    open(orgs, 'a', 2);
    expect(orgs.reachedLimit('a', 0)).toBeUndefined();
    open(orgs, 'a', 1);
    expect(orgs.reachedLimit('a', 0)).toBe('org');
  });

  it('of all orgs follow the count of all orgs, not what this process opened', () => {
    const orgs = new OpenTasks({ perOrg: 10, all: 5 });
    expect(orgs.reachedLimit('a', 0)).toBeUndefined();
    orgs.toCount(0).applyCounts(
      new Map([
        ['a', 0],
        [everybody, 5],
      ]),
    );
    expect(orgs.reachedLimit('a', 0)).toBe('all');
  });

  it('of an org without requests for a minute are forgotten', () => {
    const orgs = new OpenTasks({ perOrg: 1, all: 100 });
    open(orgs, 'a', 1);
    expect(orgs.reachedLimit('a', 50_000)).toBe('org');
    expect(orgs.toCount(100_000).orgs).toEqual(['a']);
    expect(orgs.toCount(110_001).orgs).toEqual([]);
    expect(orgs.reachedLimit('a', 110_001)).toBeUndefined();
  });

  it('are a backlog above a limit: other orgs go first, then other senders of the org', () => {
    const orgs = new OpenTasks({ perOrg: 100, all: 100 });
    open(orgs, 'a', 31);
    expect(orgs.lineOf(of('a'))).toBe(0);
    open(orgs, 'a', 1);
    open(orgs, 'a', 1, 0, 'another');
    expect([of('a'), of('a', 'another'), of('a', 'a third'), of('b')].map((origin) => orgs.lineOf(origin))).toEqual([
      2, 1, 1, 0,
    ]);
  });

  it('of a sender are counted when the org has a backlog, plus what it opened and minus what it ended since', () => {
    const orgs = new OpenTasks({ perOrg: 100, all: 100 });
    for (const org of ['a', 'b']) open(orgs, org, 1);
    expect(orgs.toCount(0).backlogs).toEqual([]);
    orgs.toCount(0).applyCounts(new Map([['a', 40]]));
    expect(orgs.lineOf(of('a'))).toBe(1);
    const { backlogs, applyCounts } = orgs.toCount(0);
    expect(backlogs).toEqual(['a']);
    applyCounts(
      new Map([
        ['a', 40],
        [of('a').sender, 31],
      ]),
    );
    open(orgs, 'a', 1);
    expect(orgs.lineOf(of('a'))).toBe(2);
    orgs.ended(of('a'));
    expect(orgs.lineOf(of('a'))).toBe(1);
  });
});
