import { generateKeys, publicKeys, type KeyRing } from '../../protocol/e2ee/e2ee.js';
import { A2AClient } from '../client.js';

describe('RI-52 own keys of a client', () => {
  it.each<[string, unknown, string]>([
    ['an empty object', {}, 'there is no key for use "enc"'],
    ['nothing', undefined, 'there is no key for use "enc"'],
    ['the public keys', publicKeys(generateKeys()), 'a key for use "enc" is only public'],
    ['no signing key', { keys: generateKeys().keys.slice(0, 1) }, 'there is no key for use "sig"'],
  ])('refuses %s, and names the private key that is missing', (_, keys, text) => {
    const e2ee = { keys: keys as KeyRing, sender: 'me' };
    const client = () => new A2AClient('https://agents.example', { e2ee });
    expect(client).toThrow(expect.objectContaining({ code: 'encryption_failed', name: 'A2AClientError' }));
    expect(client).toThrow(text);
  });
});
