import { cardRelation, descriptorOf, doorRelation, handleIn } from './webfinger.js';

const urls = { card: 'https://g/a2a/agents/kofi/card', jsonRpc: 'https://g/a2a/agents/kofi' };

describe('WebFinger', () => {
  it.each([
    ['acct:kofi@core.example', 'kofi@core.example'],
    ['ACCT:Kofi@Core.Example:8080', 'kofi@core.example:8080'],
    ['acct:k%6Ffi@core.example', 'kofi@core.example'],
    ['acct:kofi', undefined],
    ['kofi@core.example', undefined],
    ['acct:a@b@c', undefined],
    ['acct:%zz@host', undefined],
    ['https://core.example/kofi', undefined],
    ['', undefined],
  ])('reads the handle of %p', (resource, handle) => {
    expect(handleIn(resource)).toBe(handle);
  });

  it('links the card and the door of an agent, all or those that are asked for', () => {
    const all = descriptorOf('kofi@core.example', urls, []);
    expect(all).toEqual({
      subject: 'acct:kofi@core.example',
      aliases: [urls.jsonRpc],
      links: [
        { rel: cardRelation, type: 'application/json', href: urls.card },
        { rel: doorRelation, type: 'application/json', href: urls.jsonRpc },
      ],
    });
    expect(descriptorOf('k@h', urls, [doorRelation, 'x']).links.map(({ rel }) => rel)).toEqual([doorRelation]);
    expect(descriptorOf('k@h', { ...urls, handleCard: 'https://g/h' }, []).links[0]!.href).toBe('https://g/h');
  });
});
