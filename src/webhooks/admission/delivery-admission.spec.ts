import { DeliveryAdmission, type Permit, type Deferral } from './delivery-admission.js';

const isPass = (answer: Permit | Deferral): answer is Permit => answer.kind === 'permitted';

describe('DeliveryAdmission', () => {
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
  const queue = (key: string, host: string, org: string, answer: Deferral, call: () => void) =>
    gate.queueDeferred({ host, org, sender: org, key }, answer, call);
  const pass = async (host: string, org = 'a'): Promise<Permit> => {
    const answer = await enter(host, org);
    if (!isPass(answer)) throw new Error(`deferred: ${answer.why}`);
    return answer;
  };
  /** Ends posts of two orgs in turn without an answer. The first counts only for its sender. */
  const silence = async (host: string, posts: number): Promise<void> => {
    for (let count = 0; count < posts; count++) (await pass(host, count % 2 === 0 ? 'a' : 'bad')).leave('silent');
  };
  const endSlowly = (each: Permit, ms = 5_000): void => {
    now += ms;
    each.leave('answered');
  };
  /** Fills a host, and lets one post wait in vain, so that later posts are deferred at once. */
  const fill = async (host: string, org = 'a'): Promise<Permit[]> => {
    const inside = [await pass(host, org), await pass(host, org)];
    const waited = enter(host, org);
    await jest.advanceTimersByTimeAsync(100);
    expect(await waited).toMatchObject({ why: 'full' });
    return inside;
  };

  it('limits the posts to one host, for all orgs together, and does not affect other hosts', async () => {
    await fill('x');
    expect(await enter('x', 'b')).toMatchObject({ why: 'full' });
    expect(isPass(await enter('y', 'b'))).toBe(true);
  });

  it('limits the posts of one org, and does not affect other orgs', async () => {
    for (const host of ['x', 'y', 'z']) await pass(host);
    const fourth = enter('w');
    await jest.advanceTimersByTimeAsync(100);
    expect(await fourth).toMatchObject({ why: 'full' });
    expect(isPass(await enter('w', 'b'))).toBe(true);
  });

  it('gives free places to briefly waiting posts, in their order, and never more than the limit', async () => {
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

  it('calls first the sender of an org with the fewest posts at a host, and reserves the place for it', async () => {
    gate = new DeliveryAdmission({ perHost: 2, perOrg: 9, perSender: 9 }, { elapsed: () => now });
    const requestOf = (sender: string, key: string) => ({ host: 'x', org: 'a', sender, key });
    const inside = [await gate.enter(requestOf('greedy', 'g1')), await gate.enter(requestOf('greedy', 'g2'))];
    const waited = gate.enter(requestOf('greedy', 'g3'));
    await jest.advanceTimersByTimeAsync(100);
    await waited;
    const called: string[] = [];
    for (const each of [requestOf('greedy', 'g3'), requestOf('greedy', 'g4'), requestOf('modest', 'm1')])
      gate.queueDeferred(each, (await gate.enter(each)) as Deferral, () => called.push(each.key));
    endSlowly(inside[0] as Permit);
    expect(called).toEqual(['m1']);
    expect(await gate.enter(requestOf('greedy', 'g5'))).toMatchObject({ why: 'full' });
    expect(isPass(await gate.enter(requestOf('modest', 'm1')))).toBe(true);
    endSlowly(inside[1] as Permit);
    expect(called).toEqual(['m1', 'g3']);
  });

  it('defers posts to a slow host at once, and calls them when other posts end', async () => {
    const [first, second] = await fill('x');
    const called: string[] = [];
    for (const [key, org] of [
      ['k1', 'b'],
      ['k2', 'c'],
      ['k1', 'b'],
    ] as const) {
      const answer = await enter('x', org, key);
      if (isPass(answer)) throw new Error('there is no room');
      queue(key, 'x', org, answer, () => called.push(key));
    }
    expect(gate.waiting).toBe(2);
    endSlowly(first!);
    expect(called).toEqual(['k2']); // k1 asked again, so it is now behind k2
    endSlowly(second!);
    expect(called).toEqual(['k2', 'k1']);
    expect(gate.waiting).toBe(0);
  });

  it('calls a deferred post at once when the last other post ended before it was queued', async () => {
    const [first, second] = await fill('x');
    const answer = await enter('x');
    endSlowly(first!);
    endSlowly(second!);
    const called: string[] = [];
    queue('k', 'x', 'a', answer as Deferral, () => called.push('k'));
    expect(called).toEqual(['k']);
  });

  it('spreads the due times of the rows of one host, and forgets a queued post when its row is due', async () => {
    await fill('x');
    const waits: number[] = [];
    for (let count = 0; count < 1_000; count++) waits.push(((await enter('x')) as Deferral).inMs);
    expect(waits.every((ms, index) => index === 0 || ms - waits[index - 1]! >= 20)).toBe(true);
    queue('k', 'x', 'a', { kind: 'deferred', why: 'full', inMs: 500 }, () => undefined);
    now += 501;
    expect(gate.waiting).toBe(0);
  });

  it('sends only one probe at a time to a host that is down, and calls the others when it is back', async () => {
    await silence('x', 11);
    expect(gate.openBreakers).toBe(1);
    const answer = (await enter('x')) as Deferral;
    expect(answer).toEqual({ kind: 'deferred', why: 'down', inMs: 5_000 });
    const called: string[] = [];
    for (const key of ['k1', 'k2', 'k3']) queue(key, 'x', 'a', answer, () => called.push(key));
    expect(isPass(await enter('y'))).toBe(true);

    now += 5_000;
    const probe = await pass('x');
    expect(await enter('x', 'b')).toMatchObject({ why: 'down' });
    probe.leave('silent');
    expect(called).toEqual([]);
    expect(await enter('x')).toMatchObject({ why: 'down' });
    for (const key of ['k1', 'k2', 'k3'])
      queue(key, 'x', 'a', { kind: 'deferred', why: 'down', inMs: 60_000 }, () => called.push(key));
    now += 10_000;
    (await pass('x')).leave('answered');
    expect(gate.openBreakers).toBe(0);
    expect(called).toEqual(['k1', 'k2']); // as many as there are free places
  });

  it('defers a briefly waiting post when the host goes down meanwhile', async () => {
    await silence('x', 9);
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

  it('gets no answer at one org: the host is down for this sender only, until it answers', async () => {
    for (let count = 0; count < 10; count++) (await pass('x')).leave('silent');
    expect(await enter('x')).toEqual({ kind: 'deferred', why: 'down', inMs: 5_000 });
    const colleague = { host: 'x', org: 'a', sender: 'colleague', key: 'k' };
    for (let count = 0; count < 20; count++) {
      const answer = await gate.enter(colleague);
      if (!isPass(answer)) throw new Error(`deferred: ${answer.why}`);
      answer.leave('answered');
      (await pass('x', 'b')).leave('answered');
    }
    expect(gate.openBreakers).toBe(1);
    now += 5_000;
    (await pass('x')).leave('answered');
    expect(gate.openBreakers).toBe(0);
  });

  it('leaves one place at a host to others, for a sender with posts that do not end', async () => {
    gate = new DeliveryAdmission({ perHost: 4, perOrg: 9, perSender: 9 }, { elapsed: () => now });
    for (let count = 0; count < 3; count++) await pass('x');
    const fourth = enter('x');
    (await pass('x', 'b')).leave('answered');
    await jest.advanceTimersByTimeAsync(100);
    expect(await fourth).toMatchObject({ why: 'full' });
    expect(isPass(await gate.enter({ host: 'x', org: 'a', sender: 'colleague', key: 'k' }))).toBe(true);
  });

  it('does not count a post that was not sent as a probe: the next post probes the host', async () => {
    for (let count = 0; count < 10; count++) (await pass('x')).leave('silent');
    now += 5_000;
    (await pass('x')).leave('none');
    expect(gate.openBreakers).toBe(1);
    (await pass('x')).leave('answered');
    expect(gate.openBreakers).toBe(0);
  });

  it('stores nothing about hosts without failures', async () => {
    for (let count = 0; count < 100; count++) (await pass(`h${count}`)).leave('answered');
    expect((gate as unknown as { hosts: Map<string, unknown> }).hosts.size).toBe(0);
  });

  describe('abuse 36: one org at a host that other orgs post to', () => {
    it('is refused many times, and other orgs are still admitted', async () => {
      for (let tries = 0; tries < 30; tries++) {
        const answer = await enter('x', 'bad');
        if (isPass(answer)) answer.leave('refused');
      }
      expect(await enter('x', 'bad')).toEqual({ kind: 'deferred', why: 'down', inMs: expect.any(Number) });
      expect(gate.openBreakers).toBe(1);
      for (let tries = 0; tries < 5; tries++) (await pass('x', 'good')).leave('answered');
      now += 60_000;
      (await pass('x', 'bad')).leave('answered');
      expect(gate.openBreakers).toBe(0);
    });

    it('probes a silent host in turn with other orgs', async () => {
      await silence('x', 11);
      const [bad, good] = [(await enter('x', 'bad', 'b')) as Deferral, (await enter('x', 'good', 'g')) as Deferral];
      for (const [key, org, answer] of [
        ['b', 'bad', bad],
        ['g', 'good', good],
      ] as const)
        queue(key, 'x', org, answer, () => undefined);
      now += 5_001;
      expect(await enter('x', 'bad', 'b')).toEqual({ kind: 'deferred', why: 'down', inMs: 2_000 });
      (await pass('x', 'good')).leave('answered');
      expect(isPass(await enter('x', 'bad', 'b'))).toBe(true);
    });

    it('gets the turn of another org that does not use it in time', async () => {
      await silence('x', 11);
      queue('g', 'x', 'good', (await enter('x', 'good', 'g')) as Deferral, () => undefined);
      now += 5_000;
      expect(await enter('x', 'bad')).toMatchObject({ why: 'down' });
      now += 2_001;
      expect(isPass(await enter('x', 'bad'))).toBe(true);
    });

    it('posts endSlowly and without end, and another org gets the next free place', async () => {
      const inside = await fill('x', 'bad');
      const called: string[] = [];
      for (let waits = 0; waits < 10; waits++)
        queue(`b${waits}`, 'x', 'bad', { kind: 'deferred', why: 'full', inMs: 60_000 }, () => called.push('bad'));
      queue('g', 'x', 'good', { kind: 'deferred', why: 'full', inMs: 60_000 }, () => called.push('good'));
      endSlowly(inside[0]!);
      expect(called).toEqual(['good']);
      expect(await enter('x', 'bad')).toMatchObject({ why: 'full' }); // the called org has its turn first
      expect(isPass(await enter('x', 'good', 'g'))).toBe(true);
    });

    it('shares a single place in turn with another org', async () => {
      gate = new DeliveryAdmission({ perHost: 1, perOrg: 3, perSender: 3 }, { elapsed: () => now });
      const served: string[] = [];
      const attempt = async (org: string, key: string): Promise<void> => {
        const answer = await enter('x', org, key);
        if (!isPass(answer)) return queue(key, 'x', org, answer, () => void attempt(org, key));
        served.push(org);
        setTimeout(() => endSlowly(answer, 200), 0);
      };
      (await pass('x', 'bad')).leave('answered');
      const first = await pass('x', 'bad');
      for (let each = 0; each < 6; each++) void attempt('bad', `b${each}`);
      for (let each = 0; each < 2; each++) void attempt('good', `g${each}`);
      await jest.advanceTimersByTimeAsync(200);
      endSlowly(first);
      await jest.advanceTimersByTimeAsync(1_000);
      expect(served.slice(0, 4)).toEqual(['good', 'bad', 'good', 'bad']);
      expect(served).toHaveLength(8);
    });
  });

  describe('abuse 36: one sender of an org', () => {
    const requestOf = (host: string, sender: string, key = `${host} ${sender} ${count++}`) => ({
      host,
      org: 'a',
      sender,
      key,
    });
    const enterAs = async (sender: string, host: string): Promise<Permit> => {
      const answer = await gate.enter(requestOf(host, sender));
      if (!isPass(answer)) throw new Error(`deferred: ${answer.why}`);
      return answer;
    };
    const hosts = (many: number) => Array.from({ length: many }, (_, index) => `h${index}`);
    /** Takes all places of a sender, and lets one more post wait in vain. */
    const fillAs = async (sender: string): Promise<Permit[]> => {
      const inside: Permit[] = [];
      for (const host of hosts(3)) inside.push(await enterAs(sender, host));
      const fourth = gate.enter(requestOf('h3', sender));
      await jest.advanceTimersByTimeAsync(100);
      expect(await fourth).toMatchObject({ why: 'full' });
      return inside;
    };
    beforeEach(
      () => void (gate = new DeliveryAdmission({ perHost: 2, perOrg: 4, perSender: 3 }, { elapsed: () => now })),
    );

    it('leaves places for other senders, at other hosts and at the same host', async () => {
      await fillAs('bad');
      (await enterAs('good', 'x')).leave('answered');
      (await enterAs('good', 'h0')).leave('answered');
    });

    it('leaves places also beside another sender with slow posts', async () => {
      gate = new DeliveryAdmission({ perHost: 9, perOrg: 8, perSender: 6 }, { elapsed: () => now });
      const inside: Record<string, number> = {};
      for (const sender of ['bad', 'worse', 'good']) {
        const answers = Promise.all(hosts(9).map((host) => gate.enter(requestOf(host, sender))));
        await jest.advanceTimersByTimeAsync(100);
        inside[sender] = (await answers).filter(isPass).length;
      }
      expect(inside).toEqual({ bad: 6, worse: 1, good: 1 });
    });

    it('with all its places taken does not block the senders behind it in the queue', async () => {
      await fillAs('bad');
      const good = await enterAs('good', 'y');
      const called: string[] = [];
      for (const sender of ['bad', 'good'])
        gate.queueDeferred(requestOf('x', sender), { kind: 'deferred', why: 'full', inMs: 60_000 }, () =>
          called.push(sender),
        );
      endSlowly(good);
      expect(called).toEqual(['good']);
    });

    it('is saturated with all its places taken and many posts queued, until either changes', async () => {
      const [first] = await fillAs('bad');
      for (let waits = 0; waits < 200; waits++) {
        expect(gate.saturated).toEqual([]);
        gate.queueDeferred(requestOf('x', 'bad'), { kind: 'deferred', why: 'full', inMs: 60_000 }, () => undefined);
      }
      expect(gate.saturated).toEqual(['bad']);
      endSlowly(first!);
      expect(gate.saturated).toEqual([]);
      await enterAs('bad', 'h0');
      for (const _called of hosts(2))
        gate.queueDeferred(requestOf('x', 'bad'), { kind: 'deferred', why: 'full', inMs: 60_000 }, () => undefined);
      expect(gate.saturated).toEqual(['bad']);
      now += 60_001;
      expect(gate.saturated).toEqual([]);
    });
  });
});
