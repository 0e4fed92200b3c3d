import { genesisHash } from './chain.js';
import { anchorFault, beforeFirst, checkpointHash, placeFault, type AnchoredCheckpoint } from './checkpoint.js';

const hash = (letter: string): string => letter.repeat(64);
const point = (more: Partial<AnchoredCheckpoint> = {}): AnchoredCheckpoint => ({
  orgId: '00000000-0000-4000-8000-000000000000',
  number: 1,
  prevHash: genesisHash,
  sequence: 10,
  hash: hash('a'),
  at: '2026-01-01T00:00:00.000Z',
  kid: 'k',
  signature: 's',
  ...more,
});

describe('the position of a checkpoint', () => {
  const first = point();
  const second = point({ number: 2, prevHash: checkpointHash(first), sequence: 20 });

  it('follows the previous checkpoint without a gap', () => {
    expect(placeFault(beforeFirst(0), first)).toBeUndefined();
    expect(placeFault({ number: 1, hash: checkpointHash(first) }, second)).toBeUndefined();
    expect(placeFault(beforeFirst(0), second)).toBe('checkpoint 1 was removed');
    expect(placeFault(beforeFirst(0), { ...first, prevHash: hash('b') })).toBe(
      'checkpoint 1 does not follow checkpoint 0',
    );
  });

  it('follows the checkpoints that retention dropped', () => {
    expect(placeFault(beforeFirst(1), second)).toBeUndefined();
    expect(placeFault(beforeFirst(1), point({ number: 3 }))).toBe('checkpoint 2 was removed');
  });

  it('is invalid after any change of the previous checkpoint, also of its signature', () => {
    const before = { number: 1, hash: checkpointHash({ ...first, signature: 't' }) };
    expect(placeFault(before, second)).toBe('checkpoint 2 does not follow checkpoint 1');
  });
});

describe('an anchored checkpoint', () => {
  const anchored = point({ number: 5, sequence: 10 });
  it.each([
    ['that is stored, with the hash of its event', { stored: anchored, chainHash: hash('a') }, undefined],
    ['for a removed event', { stored: anchored }, 'event 10 was removed'],
    ['for a changed event', { stored: anchored, chainHash: hash('b') }, 'event 10, or one before it, was changed'],
    ['that was removed', { chainHash: hash('a') }, 'checkpoint 5 was removed'],
    [
      'that differs from the stored one',
      { stored: point({ number: 5, kid: 'z' }), chainHash: hash('a') },
      'checkpoint 5 differs from the anchored one',
    ],
    ['that retention dropped with its events', { cut: { sequence: 10, removedTo: 5 } }, undefined],
    [
      'that retention did not drop, with its events',
      { cut: { sequence: 10, removedTo: 4 } },
      'checkpoint 5 was removed',
    ],
    ['for an event after the cut', { cut: { sequence: 9, removedTo: 5 } }, 'event 10 was removed'],
  ])('%s', (_what, database, fault) => expect(anchorFault(anchored, database)?.reason).toBe(fault));
});
