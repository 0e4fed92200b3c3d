import { negotiate, restVersion, versionOf } from './negotiate.js';

describe('versionOf', () => {
  it.each([
    [undefined, '0.3'],
    ['', '0.3'],
    ['  ', '0.3'],
    ['1.0', '1.0'],
    [' 1.0 ', '1.0'],
    ['1.0.1', '1.0'],
    ['0.3', '0.3'],
    ['0.3.0', '0.3'],
    ['0.2', '0.3'],
    ['0.2.6', '0.3'],
    ['2.0', undefined],
    ['0.5', undefined],
    ['1', undefined],
    ['1.0.0.0', undefined],
    ['v1.0', undefined],
    ['1.0, 0.3', undefined],
    ['abc', undefined],
  ])('reads %p as %p', (header, version) => expect(versionOf(header)).toBe(version));
});

describe('negotiate', () => {
  it.each([
    ['SendMessage', undefined, '1.0'],
    ['SendMessage', '0.3', '1.0'],
    ['GetTask', '1.0', '1.0'],
    ['message/send', undefined, '0.3'],
    ['message/send', '1.0', '0.3'],
    ['tasks/pushNotificationConfig/set', '1.0', '0.3'],
    ['Tasks/Get', '1.0', '0.3'],
    ['ping', undefined, '0.3'],
    ['ping', '', '0.3'],
    ['ping', '1.0', '1.0'],
    ['', '1.0', '1.0'],
  ])('%s with version %p is %s', (method, header, version) =>
    expect(negotiate(method, header)).toEqual({ ok: true, version }),
  );

  it.each(['2.0', 'abc', '0.5'])('refuses version %s for every method', (header) => {
    const refused = { ok: false, code: 'version_not_supported' };
    expect(negotiate('SendMessage', header)).toEqual(refused);
    expect(negotiate('message/send', header)).toEqual(refused);
  });
});

describe('restVersion', () => {
  it.each([
    [undefined, false, '1.0'],
    [undefined, true, '0.3'],
    ['1.0.1', false, '1.0'],
    ['0.3', true, '0.3'],
    ['1.0', true, '0.3'],
  ])('%p with v1 prefix %p is %s', (header, prefixed, version) =>
    expect(restVersion(header, prefixed)).toEqual({ ok: true, version }),
  );

  it('refuses a version that the gateway does not support', () =>
    expect(restVersion('3.1', false)).toMatchObject({ ok: false }));
});
