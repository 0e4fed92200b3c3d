import type { Act } from '../kernel/verb-bus.js';
import { digestOf } from './act-digest.js';

describe('digestOf', () => {
  const act = {
    verb: 'bank__pay',
    action: 'mcp_call',
    resource: { type: 'Tool', id: 'bank__pay' },
    args: { to: 'ann', amount: 9 },
    ctx: { principal: { kind: 'user', id: 'bob', role: 'member', groups: [] } },
    id: 'one',
  } as unknown as Act;
  const finance = { groups: ['finance'], lifetimeMs: 60_000 };
  const digest = (more: object = {}, version = 'v1', needs = finance) => digestOf({ ...act, ...more }, version, needs);

  it('is equal for the same act, in any order of the arguments, with another act id and other groups', () => {
    const ctx = { principal: { kind: 'user', id: 'bob', role: 'admin', groups: ['g'] } };
    expect(digest({ id: 'two', args: { amount: 9, to: 'ann' }, ctx })).toBe(digest());
  });

  it.each([
    ['verb', { verb: 'bank__other' }],
    ['action', { action: 'a2a_invoke' }],
    ['resource', { resource: { type: 'Tool', id: 'bank__other' } }],
    ['an argument', { args: { to: 'ann', amount: 90 } }],
    ['an added argument', { args: { to: 'ann', amount: 9, note: '' } }],
    ['the type of an argument', { args: { to: 'ann', amount: '9' } }],
    ['the content', { content: { parts: [{ text: 'x' }] } }],
    ['the target', { target: { id: 'another' } }],
    ['the caller', { ctx: { principal: { kind: 'user', id: 'eve' } } }],
    ['the kind of the caller', { ctx: { principal: { kind: 'service', id: 'bob' } } }],
  ])('changes with %s', (_, more) => {
    expect(digest(more)).not.toBe(digest());
  });

  it('changes with the addresses behind the target', () => {
    const behind = (url: string) => digestOf(act, 'v1', finance, { url });
    expect(new Set([digest(), behind('https://one.example'), behind('https://two.example')]).size).toBe(3);
  });

  it('changes with the receivers of the result', () => {
    const url = (text: string) => digest({ receivers: { url: text } });
    expect(new Set([digest(), url('https://one.example/?k=1'), url('https://one.example/?k=2')]).size).toBe(3);
  });

  it('changes with the version of the policies', () => {
    expect(digest({}, 'v2')).not.toBe(digest());
  });

  it.each([
    ['groups', { ...finance, groups: ['board', 'finance'] }],
    ['lifetime', { ...finance, lifetimeMs: 1_000 }],
  ])('changes with the %s that the policies ask for', (_, needs) => {
    expect(digest({}, 'v1', needs)).not.toBe(digest());
  });
});
