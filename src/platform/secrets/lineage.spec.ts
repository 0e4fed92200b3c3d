import { createSecretKey } from 'node:crypto';
import { foreign, LineageSeal, lineageId } from './lineage.js';

const seal = new LineageSeal(createSecretKey(Buffer.alloc(32, 1)));
const lineage = { depth: 2, path: ['published:acme/desk', 'https://agent.example/a2a'], deadlineAt: 1_763_856_000_000 };

describe('the lineage of a call', () => {
  it('AN-61 can be read by every holder of the secret, unchanged', () => {
    expect(new LineageSeal(createSecretKey(Buffer.alloc(32, 1))).openLineage(seal.sealLineage(lineage))).toEqual(
      lineage,
    );
    expect(seal.openLineage(seal.sealLineage({ depth: 1, path: [] }))).toEqual({ depth: 1, path: [] });
  });

  it('AN-61 becomes unreadable by any change, at any place', () => {
    const header = seal.sealLineage(lineage);
    for (let at = 0; at < header.length; at++) {
      const other = header[at] === 'A' ? 'B' : 'A';
      expect(seal.openLineage(header.slice(0, at) + other + header.slice(at + 1))).toBeUndefined();
    }
    for (const text of [
      '',
      '.',
      '..',
      'v1..',
      `${header}.x`,
      `${header}=`,
      ` ${header}`,
      'v1.e30.e30',
      header.repeat(20),
    ])
      expect(seal.openLineage(text)).toBeUndefined();
  });

  it('AN-61 of another deployment is not trusted, and is distinguished from damage at any place', () => {
    const header = new LineageSeal(createSecretKey(Buffer.alloc(32, 2))).sealLineage(lineage);
    expect(seal.openLineage(header)).toBe(foreign);
    for (let at = 0; at < header.length; at++) {
      const other = header[at] === 'A' ? 'B' : 'A';
      expect(seal.openLineage(header.slice(0, at) + other + header.slice(at + 1))).toBeUndefined();
    }
  });

  it('AN-61 contains ids of at most 200 characters', () => {
    const long = `https://agent.example/${'x'.repeat(500)}`;
    expect(lineageId(long)).toHaveLength(200);
    expect(seal.openLineage(seal.sealLineage({ depth: 1, path: [long] }))).toMatchObject({ path: [lineageId(long)] });
  });
});
