import { everybody, OpenTasks } from './open-tasks.js';

describe('open tasks', () => {
  const open = (orgs: OpenTasks, org: string, times: number, now = 0) => {
    for (let count = 0; count < times; count++) {
      if (orgs.full(org, now)) continue;
      orgs.opened(org);
      orgs.arrived(org);
    }
  };

  it('are let in up to the limit of their org, and others go on', () => {
    const orgs = new OpenTasks({ perOrg: 3, all: 100 });
    open(orgs, 'a', 3);
    expect([orgs.full('a', 0), orgs.full('b', 0)]).toEqual(['org', undefined]);
  });

  it('are let in up to the limit of all', () => {
    const orgs = new OpenTasks({ perOrg: 3, all: 4 });
    open(orgs, 'a', 2);
    open(orgs, 'b', 2);
    expect([orgs.full('a', 0), orgs.full('c', 0)]).toEqual(['all', 'all']);
  });

  it('are as many as were counted, and those that were opened meanwhile', () => {
    const orgs = new OpenTasks({ perOrg: 10, all: 100 });
    open(orgs, 'a', 9);
    const { orgs: asked, take } = orgs.toCount(1);
    expect(asked).toEqual(['a']);
    open(orgs, 'a', 1);
    expect(orgs.full('a', 1)).toBe('org');
    take(new Map([['a', 4]]));
    open(orgs, 'a', 4);
    expect(orgs.full('a', 1)).toBeUndefined();
    open(orgs, 'a', 1);
    expect(orgs.full('a', 1)).toBe('org');
  });

  it('are as many while they are on their way to their rows, which no count sees', () => {
    const orgs = new OpenTasks({ perOrg: 3, all: 100 });
    open(orgs, 'a', 1);
    orgs.opened('a');
    orgs.opened('a');
    const { take } = orgs.toCount(0);
    orgs.arrived('a');
    take(new Map([['a', 1]]));
    expect(orgs.full('a', 0)).toBe('org');
    orgs.arrived('a');
    orgs.toCount(0).take(new Map([['a', 2]]));
    expect(orgs.full('a', 0)).toBeUndefined();
  });

  it('make room when they end, before the next count and while it is made', () => {
    const orgs = new OpenTasks({ perOrg: 3, all: 100 });
    for (let round = 0; round < 10; round++) {
      open(orgs, 'a', 3);
      expect(orgs.full('a', 0)).toBe('org');
      for (let each = 0; each < 3; each++) orgs.ended('a');
    }
    open(orgs, 'a', 3);
    const { take } = orgs.toCount(0);
    for (let each = 0; each < 3; each++) orgs.ended('a');
    take(new Map([['a', 3]]));
    open(orgs, 'a', 2);
    expect(orgs.full('a', 0)).toBeUndefined();
    open(orgs, 'a', 1);
    expect(orgs.full('a', 0)).toBe('org');
  });

  it('of all are what was counted of all, not what was opened here', () => {
    const orgs = new OpenTasks({ perOrg: 10, all: 5 });
    expect(orgs.full('a', 0)).toBeUndefined();
    orgs.toCount(0).take(
      new Map([
        ['a', 0],
        [everybody, 5],
      ]),
    );
    expect(orgs.full('a', 0)).toBe('all');
  });

  it('of an org that was silent for a minute are forgotten', () => {
    const orgs = new OpenTasks({ perOrg: 1, all: 100 });
    open(orgs, 'a', 1);
    expect(orgs.full('a', 50_000)).toBe('org');
    expect(orgs.toCount(100_000).orgs).toEqual(['a']);
    expect(orgs.toCount(110_001).orgs).toEqual([]);
    expect(orgs.full('a', 110_001)).toBeUndefined();
  });

  it('are a backlog from some number on', () => {
    const orgs = new OpenTasks({ perOrg: 100, all: 100 });
    open(orgs, 'a', 31);
    expect(orgs.hasBacklog('a')).toBe(false);
    open(orgs, 'a', 1);
    expect([orgs.hasBacklog('a'), orgs.hasBacklog('b')]).toEqual([true, false]);
  });
});
