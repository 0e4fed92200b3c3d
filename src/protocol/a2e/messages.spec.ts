import { canonicalType, isAnswer, messageOf, readMessage, refusalOf, replyTo } from './messages.js';

const stamp = { id: 'own', now: 1_500 };

describe('the A2E envelope', () => {
  it('AE-15 is read with all its members, or with the required ones only', () => {
    const full = { type: 'mcp/x/resp', id: 'a', version: '1.0', ts: 3.5, req_id: 'b', ok: false, error: { code: 'c' } };
    expect(readMessage({ ...full, server_id: 's' })).toEqual({
      ok: true,
      message: {
        type: 'mcp/x/resp',
        spelling: 'mcp/x/resp',
        id: 'a',
        reqId: 'b',
        ok: false,
        error: { code: 'c' },
        payload: { server_id: 's' },
      },
    });
    expect(readMessage({ type: 't', id: 'a', version: null, ts: null })).toMatchObject({
      ok: true,
      message: { ok: true },
    });
  });

  it('has its payload at the top level, or in a payload or data object', () => {
    const value = { type: 't', id: 'a', uri: 'top', payload: { uri: 'in', name: 'p' }, data: { name: 'd', more: 1 } };
    expect(readMessage(value)).toMatchObject({ message: { payload: { uri: 'top', name: 'p', more: 1 } } });
  });

  it.each([
    [7, {}],
    [null, {}],
    [[], {}],
    [{}, {}],
    [{ id: 'a' }, { id: 'a' }],
    [{ type: 't' }, { type: 't' }],
    [{ type: 't', id: 7 }, { type: 't' }],
    [{ type: '', id: 'a' }, { id: 'a' }],
    [{ type: 't', id: 'x'.repeat(201) }, { type: 't' }],
    [
      { type: 't', id: 'a', version: '2.0' },
      { type: 't', id: 'a' },
    ],
    [
      { type: 't', id: 'a', version: 1 },
      { type: 't', id: 'a' },
    ],
    [
      { type: 't', id: 'a', ts: 'now' },
      { type: 't', id: 'a' },
    ],
    [
      { type: 't', id: 'a', payload: 'x' },
      { type: 't', id: 'a' },
    ],
    [
      { type: 't', id: 'a', data: [] },
      { type: 't', id: 'a' },
    ],
  ])('AE-15 is refused as %j, with its readable members', (value, read) => {
    const parsed = readMessage(value);
    expect(parsed).toMatchObject({ ok: false, reason: expect.any(String), ...read });
  });

  it('AE-14 has older spellings, and the reply uses the spelling of the request', () => {
    const types = ['mcp/sample/req', 'mcp/sample/resp', 'mcp/root/list/req', 'mcp/root/list/resp', 'mcp/call_tool/req'];
    expect(types.map(canonicalType)).toEqual([
      'mcp/sampling/req',
      'mcp/sampling/resp',
      'mcp/roots/list/req',
      'mcp/roots/list/resp',
      'mcp/call_tool',
    ]);
    const parsed = readMessage({ type: 'mcp/sample/resp', id: 'a', req_id: 'b' });
    expect(parsed.ok && isAnswer(parsed.message)).toBe(true);
    expect(replyTo({ type: 'mcp/root/list/req', id: 'a' }, stamp, {}).type).toBe('mcp/root/list/resp');
  });

  it('AE-15 of a reply names its request, and has an error in place of a payload', () => {
    expect(replyTo({ type: 'mcp/x/req', id: 'a' }, stamp, { uri: 'u' })).toEqual({
      type: 'mcp/x/resp',
      id: 'own',
      version: '1.0',
      ts: 1.5,
      req_id: 'a',
      ok: true,
      uri: 'u',
    });
    expect(refusalOf({}, stamp, { code: 'c' })).toMatchObject({
      type: 'mcp/error',
      req_id: null,
      ok: false,
      error: { code: 'c' },
    });
    expect(refusalOf({ type: 'mcp/x/resp' }, stamp, {}).type).toBe('mcp/x/resp');
    expect(replyTo({ type: 'mcp/call_tool', id: 'a' }, stamp, {}).type).toBe('mcp/call_tool/resp');
    expect(messageOf('mcp/server/push', stamp, { server_id: 's' })).toEqual({
      type: 'mcp/server/push',
      id: 'own',
      version: '1.0',
      ts: 1.5,
      server_id: 's',
    });
  });

  it('treats a member called __proto__ as a plain member', () => {
    const parsed = readMessage(JSON.parse('{"type":"t","id":"a","payload":{"__proto__":{"uri":"x"}}}'));
    expect(parsed.ok && parsed.message.payload.uri).toBeUndefined();
  });
});
