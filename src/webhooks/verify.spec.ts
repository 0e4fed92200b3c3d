import { Webhook } from 'standardwebhooks';
import { verifyWebhook, WebhookVerificationError } from './verify.js';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const other = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const now = Date.parse('2026-01-31T12:00:00Z');
const body = '{"task":{"id":"ü"}}';
const signed = (by: readonly string[] = [secret], at = now) => ({
  'webhook-id': 'msg_1',
  'webhook-timestamp': String(at / 1_000),
  'webhook-signature': by.map((one) => new Webhook(one).sign('msg_1', new Date(at), body)).join(' '),
});

describe('abuse 29: a delivery is accepted', () => {
  it('when the library of Standard Webhooks has signed it', () => {
    expect(verifyWebhook(secret, signed(), body, { now })).toEqual({ task: { id: 'ü' } });
    expect(verifyWebhook(secret, new Headers(signed()), Buffer.from(body), { now })).toEqual({ task: { id: 'ü' } });
    expect(verifyWebhook(secret, { ...signed(), 'Webhook-Id': ['msg_1'] }, body, { now })).toBeDefined();
  });

  it('with either secret during a change of secrets, on both sides', () => {
    for (const one of [secret, other]) expect(verifyWebhook(one, signed([other, secret]), body, { now })).toBeDefined();
    expect(verifyWebhook([other, secret], signed(), body, { now })).toBeDefined();
  });

  it('only as a raw body: for a parsed one the error says so', () => {
    const parsed = JSON.parse(body) as string;
    expect(() => verifyWebhook(secret, signed(), parsed, { now })).toThrow('the raw body is needed');
  });

  it.each([
    ['another body', secret, signed(), body.replace('id', 'ID')],
    ['a signature with another secret', secret, signed([other]), body],
    ['another id', secret, { ...signed(), 'webhook-id': 'msg_2' }, body],
    ['another time', secret, { ...signed(), 'webhook-timestamp': String(now / 1_000 - 1) }, body],
    ['no signature', secret, { ...signed(), 'webhook-signature': undefined }, body],
    ['an empty signature', secret, { ...signed(), 'webhook-signature': ' v1, v2,x' }, body],
    ['no time', secret, { ...signed(), 'webhook-timestamp': 'now' }, body],
    ['an old delivery, sent again', secret, signed([secret], now - 301_000), body],
    ['a delivery from the future', secret, signed([secret], now + 301_000), body],
    ['no secret at all', [], signed(), body],
    ['a body that was parsed', secret, signed(), JSON.parse(body) as string],
    ['no body', secret, signed(), undefined as unknown as string],
  ])('but not with %s', (_, by, headers, text) => {
    expect(() => verifyWebhook(by, headers, text, { now })).toThrow(WebhookVerificationError);
  });

  it.each(['', 'whsec_', '   ', '!!!', 'hello', 'whsec_aGVsbG8=', undefined, null, 7])(
    'but not with %j as the secret: an attacker could sign with it',
    (noSecret) => {
      const forged = signed([`whsec_${Buffer.from('hello').toString('base64')}`]);
      expect(() => verifyWebhook(noSecret as string, forged, body, { now })).toThrow(TypeError);
      expect(() => verifyWebhook([secret, noSecret as string], signed(), body, { now })).toThrow(/missing or damaged/);
    },
  );
});
