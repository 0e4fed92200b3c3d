import { matchesTemplate, templateStart } from './uri-template.js';

describe('a URI of a template', () => {
  it.each([
    ['test://x/{id}/data', 'test://x/1/data', true],
    ['test://x/{id}/data', 'test://x/1/2/data', false],
    ['test://x/{id}/data', 'test://x/1/data/', false],
    ['test://x/{id}', 'test://x/..', true],
    ['test://x/{id}', 'test://x/../y', false],
    ['test://x/{id}', 'test://x/1?a=b', false],
    ['test://x/{id}', 'test://y/1', false],
    ['file:///{+path}', 'file:///a/b/c', true],
    ['file://{/a,b}', 'file:///a/b', true],
    ['search://{?q}', 'search://?q=1', true],
    ['search://all{?q}', 'search://all', true],
    ['a://{x}-{y}', 'a://1-2', true],
    ['a://{x}{y}', 'a://12', true],
    ['a://fixed', 'a://fixed', true],
    ['a://fixed', 'a://fixed2', false],
    ['a://{', 'a://{', true],
    ['{+any}', 'whatever://it/is', true],
    ['a{x}a', 'a', false],
  ])('%s and %s: %s', (template, uri, matches) => {
    expect(matchesTemplate(template, uri)).toBe(matches);
  });

  it('is matched in linear time, for any number of expressions', () => {
    expect(matchesTemplate(`${'{a}x'.repeat(1_000)}y`, 'x'.repeat(2_000))).toBe(false);
  });

  it('begins with the text before the first expression', () => {
    expect(templateStart('test://x/{id}')).toBe('test://x/');
    expect(templateStart('test://x')).toBe('test://x');
  });
});
