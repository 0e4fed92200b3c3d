import type { OrgId } from '../../kernel/ids.js';
import type { StoredTask } from '../task.types.js';
import { RunShares } from './run-shares.js';

describe('the shares of senders in the runs of a process', () => {
  const taskOf = (org: string, id: string) =>
    ({ orgId: org as OrgId, principal: { kind: 'user', id } }) as Pick<StoredTask, 'orgId' | 'principal'>;
  let shares: RunShares;
  beforeEach(() => void (shares = new RunShares()));

  /** Takes places until the sender has its share. Returns their number. */
  const fill = (org: string, id: string): number => {
    let runs = 0;
    while (shares.take(taskOf(org, id))) runs++;
    return runs;
  };

  it('are 100 of 125 runs for one alone, and always leave a place for the next ones', () => {
    expect(['a', 'b', 'c'].map((id) => fill('acme', id))).toEqual([100, 20, 4]);
    expect(shares.saturated.orgs).toEqual([]);
    expect(fill('acme', 'd')).toBe(1);
    expect(shares.saturated.orgs).toEqual(['acme']);
    expect(fill('globex', 'a')).toBe(100);
  });

  it('shrink while others need places, and are free when runs end', () => {
    fill('acme', 'a');
    for (let n = 0; n < 10; n++) shares.take(taskOf('acme', 'b'));
    expect(shares.saturated).toEqual({ orgs: [], senders: ['acme user:a'] });
    for (let n = 0; n < 100; n++) shares.giveBack(taskOf('acme', 'a'));
    expect(shares.saturated).toEqual({ orgs: [], senders: [] });
    expect(fill('acme', 'a')).toBe(92);
  });
});
