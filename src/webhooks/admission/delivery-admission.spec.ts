import { DeliveryAdmission, type Permit, type Deferral } from './delivery-admission.js';

const isPass = (answer: Permit | Deferral): answer is Permit => 'leave' in answer;

describe('the gate before hosts', () => {
  let now: number;
  let count = 0;
  let gate: DeliveryAdmission;

  beforeEach(() => {
    jest.useFakeTimers();
    now = 1_000;
    gate = new DeliveryAdmission({ perHost: 2, perOrg: 3, perSender: 3 }, { elapsed: () => now });
  });
  afterEach(() => jest.useRealTimers());

  const enter = (host: string, org = 'a', key = `${host} ${org} ${count++}`) =>
    gate.enter({ host, org, sender: org, key });
  const inLine = (key: string, host: string, org: string, answer: Deferral, call: () => void) =>
    gate.await({ host, org, sender: org, key }, answer, call);
  const pass = async (host: string, org = 'a'): Promise<Permit> => {
    const answer = await enter(host, org);
    if (!isPass(answer)) throw new Error(`put off: ${answer.why}`);
    return answer;
  };
  const slowly = (each: Permit, ms = 5_000): void => {
    now += ms;
    each.leave('answered');
  };
  /** Fills a host until nobody believes in waiting. */
  const fill = async (host: string, org = 'a'): Promise<Permit[]> => {
    const inside = [await pass(host, org), await pass(host, org)];
    const waited = enter(host, org);
    await jest.advanceTimersByTimeAsync(100);
    expect(await waited).toMatchObject({ why: 'full' });
    return inside;
  };

  it('lets so many in to one host, whatever their org, and other hosts are not concerned', async () => {
    await fill('x');
    expect(await enter('x', 'b')).toMatchObject({ why: 'full' });
    expect(isPass(await enter('y', 'b'))).toBe(true);
  });

  it('lets so many in of one org, and other orgs are not concerned', async () => {
    for (const host of ['x', 'y', 'z']) await pass(host);
    const fourth = enter('w');
    await jest.advanceTimersByTimeAsync(100);
    expect(await fourth).toMatchObject({ why: 'full' });
    expect(isPass(await enter('w', 'b'))).toBe(true);
  });

  it('gives a place to who waits for a moment, in their order, never to more', async () => {
    const [first, second] = [await pass('x'), await pass('x')];
    const order: string[] = [];
    const third = pass('x', 'b').then((each) => (order.push('third'), each));
    const fourth = pass('x', 'c').then((each) => (order.push('fourth'), each));
    first.leave('answered');
    await jest.advanceTimersByTimeAsync(0);
    expect(order).toEqual(['third']);
    second.leave('answered');
    await jest.advanceTimersByTimeAsync(0);
    expect(order).toEqual(['third', 'fourth']);
    for (const each of await Promise.all([third, fourth])) each.leave('answered');
    expect(gate.waiting).toBe(0);
  });

  it('calls the sender of an org with the fewest posts at a host first, and keeps the place for it', async () => {
    gate = new DeliveryAdmission({ perHost: 2, perOrg: 9, perSender: 9 }, { elapsed: () => now });
    const visit = (sender: string, key: string) => ({ host: 'x', org: 'a', sender, key });
    const inside = [await gate.enter(visit('greedy', 'g1')), await gate.enter(visit('greedy', 'g2'))];
    const waited = gate.enter(visit('greedy', 'g3'));
    await jest.advanceTimersByTimeAsync(100);
    await waited;
    const called: string[] = [];
    for (const each of [visit('greedy', 'g3'), visit('greedy', 'g4'), visit('modest', 'm1')])
      gate.await(each, (await gate.enter(each)) as Deferral, () => called.push(each.key));
    slowly(inside[0] as Permit);
    expect(called).toEqual(['m1']);
    expect(await gate.enter(visit('greedy', 'g5'))).toMatchObject({ why: 'full' });
    expect(isPass(await gate.enter(visit('modest', 'm1')))).toBe(true);
    slowly(inside[1] as Permit);
    expect(called).toEqual(['m1', 'g3']);
  });

  it('has nobody wait for a host that is slow: they are put off at once, and called by who finishes', async () => {
    const [first, second] = await fill('x');
    const called: string[] = [];
    for (const [key, org] of [
      ['k1', 'b'],
      ['k2', 'c'],
      ['k1', 'b'],
    ] as const) {
      const answer = await enter('x', org, key);
      if (isPass(answer)) throw new Error('there is no room');
      inLine(key, 'x', org, answer, () => called.push(key));
    }
    expect(gate.waiting).toBe(2);
    slowly(first!);
    expect(called).toEqual(['k2']); // k1 came again, and stands behind it
    slowly(second!);
    expect(called).toEqual(['k2', 'k1']);
    expect(gate.waiting).toBe(0);
  });

  it('calls at once whom nobody would call: the last post ended while it went away', async () => {
    const [first, second] = await fill('x');
    const answer = await enter('x');
    slowly(first!);
    slowly(second!);
    const called: string[] = [];
    inLine('k', 'x', 'a', answer as Deferral, () => called.push('k'));
    expect(called).toEqual(['k']);
  });

  it('lets rows of one host come due apart, and forgets whom the row has woken', async () => {
    await fill('x');
    const waits: number[] = [];
    for (let count = 0; count < 1_000; count++) waits.push(((await enter('x')) as Deferral).inMs);
    expect(waits.every((ms, index) => index === 0 || ms - waits[index - 1]! >= 20)).toBe(true);
    inLine('k', 'x', 'a', { why: 'full', inMs: 500 }, () => undefined);
    now += 501;
    expect(gate.waiting).toBe(0);
  });

  it('lets nothing through to a host that is down but one post at a time, and calls the others when it is back', async () => {
    for (let count = 0; count < 10; count++) (await pass('x')).leave('silent');
    expect(gate.openBreakers).toBe(1);
    const answer = (await enter('x')) as Deferral;
    expect(answer).toEqual({ why: 'down', inMs: 5_000 });
    const called: string[] = [];
    for (const key of ['k1', 'k2', 'k3']) inLine(key, 'x', 'a', answer, () => called.push(key));
    expect(isPass(await enter('y'))).toBe(true);

    now += 5_000;
    const probe = await pass('x');
    expect(await enter('x', 'b')).toMatchObject({ why: 'down' });
    probe.leave('silent');
    expect(called).toEqual([]);
    expect(await enter('x')).toMatchObject({ why: 'down' });
    for (const key of ['k1', 'k2', 'k3']) inLine(key, 'x', 'a', { why: 'down', inMs: 60_000 }, () => called.push(key));
    now += 10_000;
    (await pass('x')).leave('answered');
    expect(gate.openBreakers).toBe(0);
    expect(called).toEqual(['k1', 'k2']); // as many as there is room for
  });

  it('sends who waits for a moment away when the host goes down meanwhile', async () => {
    for (let count = 0; count < 8; count++) (await pass('x')).leave('silent');
    const [first, second] = [await pass('x'), await pass('x')];
    const third = enter('x', 'b');
    first.leave('silent');
    const last = await third;
    if (!isPass(last)) throw new Error('there was room');
    const fourth = enter('x', 'b');
    second.leave('silent');
    expect(await fourth).toMatchObject({ why: 'down' });
    last.leave('silent');
    expect(gate.waiting).toBe(0);
  });

  it('a post that was none tries no host: the next one does', async () => {
    for (let count = 0; count < 10; count++) (await pass('x')).leave('silent');
    now += 5_000;
    (await pass('x')).leave('none');
    expect(gate.openBreakers).toBe(1);
    (await pass('x')).leave('answered');
    expect(gate.openBreakers).toBe(0);
  });

  it('keeps nothing of hosts that nothing bad is known of', async () => {
    for (let count = 0; count < 100; count++) (await pass(`h${count}`)).leave('answered');
    expect((gate as unknown as { hosts: Map<string, unknown> }).hosts.size).toBe(0);
  });

  describe('abuse 36: one org and a host that others post to', () => {
    it('is refused as often as it likes, and they are let in', async () => {
      for (let tries = 0; tries < 30; tries++) {
        const answer = await enter('x', 'bad');
        if (isPass(answer)) answer.leave('refused');
      }
      expect(await enter('x', 'bad')).toEqual({ why: 'down', inMs: expect.any(Number) });
      expect(gate.openBreakers).toBe(1);
      for (let tries = 0; tries < 5; tries++) (await pass('x', 'good')).leave('answered');
      now += 60_000;
      (await pass('x', 'bad')).leave('answered');
      expect(gate.openBreakers).toBe(0);
    });

    it('tries in turn whether a silent host is back', async () => {
      for (let tries = 0; tries < 10; tries++) (await pass('x', 'bad')).leave('silent');
      const [bad, good] = [(await enter('x', 'bad', 'b')) as Deferral, (await enter('x', 'good', 'g')) as Deferral];
      for (const [key, org, answer] of [
        ['b', 'bad', bad],
        ['g', 'good', good],
      ] as const)
        inLine(key, 'x', org, answer, () => undefined);
      now += 5_001;
      expect(await enter('x', 'bad', 'b')).toEqual({ why: 'down', inMs: 2_000 });
      (await pass('x', 'good')).leave('answered');
      expect(isPass(await enter('x', 'bad', 'b'))).toBe(true);
    });

    it('waits no longer for a turn that nobody takes', async () => {
      for (let tries = 0; tries < 10; tries++) (await pass('x', 'bad')).leave('silent');
      inLine('g', 'x', 'good', (await enter('x', 'good', 'g')) as Deferral, () => undefined);
      now += 5_000;
      expect(await enter('x', 'bad')).toMatchObject({ why: 'down' });
      now += 2_001;
      expect(isPass(await enter('x', 'bad'))).toBe(true);
    });

    it('posts slowly and without end, and they have the next free place', async () => {
      const inside = await fill('x', 'bad');
      const called: string[] = [];
      for (let waits = 0; waits < 10; waits++)
        inLine(`b${waits}`, 'x', 'bad', { why: 'full', inMs: 60_000 }, () => called.push('bad'));
      inLine('g', 'x', 'good', { why: 'full', inMs: 60_000 }, () => called.push('good'));
      slowly(inside[0]!);
      expect(called).toEqual(['good']);
      expect(await enter('x', 'bad')).toMatchObject({ why: 'full' }); // it does not get in before who was called
      expect(isPass(await enter('x', 'good', 'g'))).toBe(true);
    });

    it('shares a single place in turn', async () => {
      gate = new DeliveryAdmission({ perHost: 1, perOrg: 3, perSender: 3 }, { elapsed: () => now });
      const served: string[] = [];
      const come = async (org: string, key: string): Promise<void> => {
        const answer = await enter('x', org, key);
        if (!isPass(answer)) return inLine(key, 'x', org, answer, () => void come(org, key));
        served.push(org);
        setTimeout(() => slowly(answer, 200), 0);
      };
      (await pass('x', 'bad')).leave('answered');
      const first = await pass('x', 'bad');
      for (let each = 0; each < 6; each++) void come('bad', `b${each}`);
      for (let each = 0; each < 2; each++) void come('good', `g${each}`);
      await jest.advanceTimersByTimeAsync(200);
      slowly(first);
      await jest.advanceTimersByTimeAsync(1_000);
      expect(served.slice(0, 4)).toEqual(['good', 'bad', 'good', 'bad']);
      expect(served).toHaveLength(8);
    });
  });

  describe('abuse 36: one sender of an org', () => {
    const visit = (host: string, sender: string, key = `${host} ${sender} ${count++}`) => ({
      host,
      org: 'a',
      sender,
      key,
    });
    const enterAs = async (sender: string, host: string): Promise<Permit> => {
      const answer = await gate.enter(visit(host, sender));
      if (!isPass(answer)) throw new Error(`put off: ${answer.why}`);
      return answer;
    };
    const hosts = (many: number) => Array.from({ length: many }, (_, index) => `h${index}`);
    /** All that the sender may have, and one that waits in vain. */
    const fillAs = async (sender: string): Promise<Permit[]> => {
      const inside: Permit[] = [];
      for (const host of hosts(3)) inside.push(await enterAs(sender, host));
      const fourth = gate.enter(visit('h3', sender));
      await jest.advanceTimersByTimeAsync(100);
      expect(await fourth).toMatchObject({ why: 'full' });
      return inside;
    };
    beforeEach(
      () => void (gate = new DeliveryAdmission({ perHost: 2, perOrg: 4, perSender: 3 }, { elapsed: () => now })),
    );

    it('leaves room for the others, at hosts of theirs and at the same', async () => {
      await fillAs('bad');
      (await enterAs('good', 'x')).leave('answered');
      (await enterAs('good', 'h0')).leave('answered');
    });

    it('that has all its places keeps nobody behind it in line from being called', async () => {
      await fillAs('bad');
      const good = await enterAs('good', 'y');
      const called: string[] = [];
      for (const sender of ['bad', 'good'])
        gate.await(visit('x', sender), { why: 'full', inMs: 60_000 }, () => called.push(sender));
      slowly(good);
      expect(called).toEqual(['good']);
    });

    it('is saturated with all its places taken and many in line, until one of both is over', async () => {
      const [first] = await fillAs('bad');
      for (let waits = 0; waits < 200; waits++) {
        expect(gate.saturated).toEqual([]);
        gate.await(visit('x', 'bad'), { why: 'full', inMs: 60_000 }, () => undefined);
      }
      expect(gate.saturated).toEqual(['bad']);
      slowly(first!);
      expect(gate.saturated).toEqual([]);
      await enterAs('bad', 'h0');
      for (const _called of hosts(2)) gate.await(visit('x', 'bad'), { why: 'full', inMs: 60_000 }, () => undefined);
      expect(gate.saturated).toEqual(['bad']);
      now += 60_001;
      expect(gate.saturated).toEqual([]);
    });
  });
});
