import { readTokenRequest } from './token-request.js';

const form = 'application/x-www-form-urlencoded';
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
const grant = 'grant_type=client_credentials';

describe('the request of a token', () => {
  it.each([
    ['in the form', `${grant}&client_id=a&client_secret=b%2B`, undefined, ['a', 'b+']],
    ['in the header', grant, basic('a:b'), ['a', 'b']],
    ['in the header, encoded', grant, basic('a%3A1:b%25'), ['a:1', 'b%']],
    ['in the header, with the id in the form too', `${grant}&client_id=a`, basic('a:b'), ['a', 'b']],
  ])('has credentials %s', (_, body, authorization, [clientId, clientSecret]) => {
    const headers = { 'content-type': `${form}; charset=utf-8`, authorization };
    expect(readTokenRequest(body, headers)).toEqual({ ok: true, clientId, clientSecret });
  });

  it.each([
    ['another body', '{}', 'application/json', undefined, 'invalid_request'],
    ['no grant', 'client_id=a&client_secret=b', form, undefined, 'invalid_request'],
    ['a member twice', `${grant}&client_id=a&client_id=b&client_secret=c`, form, undefined, 'invalid_request'],
    ['two secrets', `${grant}&client_id=a&client_secret=b`, form, basic('a:b'), 'invalid_request'],
    ['another grant', 'grant_type=password&client_id=a&client_secret=b', form, undefined, 'unsupported_grant_type'],
    ['a scope', `${grant}&client_id=a&client_secret=b&scope=all`, form, undefined, 'invalid_scope'],
    ['no secret', `${grant}&client_id=a`, form, undefined, 'invalid_client'],
    ['another scheme', grant, form, 'Bearer a', 'invalid_client'],
    ['a broken header', grant, form, basic('a'), 'invalid_client'],
    ['a broken escape', grant, form, basic('a:%zz'), 'invalid_client'],
  ])('is refused with %s', (_, body, type, authorization, error) => {
    expect(readTokenRequest(body, { 'content-type': type, authorization })).toMatchObject({ ok: false, error });
  });

  it.each([form, 'application/json', undefined])('as JSON is refused with the type of body to send (%s)', (type) => {
    const body = '\n{ "grant_type": "client_credentials", "client_id": "a", "client_secret": "b" }';
    expect(readTokenRequest(body, { 'content-type': type })).toMatchObject({
      ok: false,
      error: 'invalid_request',
      description: expect.stringContaining('the body must be application/x-www-form-urlencoded'),
    });
  });

  it('is read in linear time, however many names it has', () => {
    const names = Array.from({ length: 30_000 }, (_, index) => `n${index}`);
    const { user } = process.cpuUsage();
    const read = readTokenRequest(`${grant}&${names.join('&')}`, { 'content-type': form });
    expect(read).toMatchObject({ ok: false, error: 'invalid_client' });
    // Linear time takes 30 ms. To compare each name with each other one takes many seconds.
    expect((process.cpuUsage().user - user) / 1_000).toBeLessThan(1_000);
  });
});
