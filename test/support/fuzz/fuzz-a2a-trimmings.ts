import { hostileTexts } from './fuzz-json.js';
import type { Random } from './random.js';

/* Hostile values for the surroundings of a request to the A2A doors: URLs, path segments, queries and headers. */

export const hostileUrls = [
  'http://169.254.169.254/latest/meta-data',
  'http://[fd00::1]/',
  'http://0x7f.1:22/',
  'http://2130706433/',
  'http://user:secret@127.0.0.1:9/',
  'http://127.0.0.1:99999/',
  'http://127.0.0.1:9/\r\nX-Evil: 1',
  'http://127.0.0.1\\@evil.invalid/',
  'file:///etc/passwd',
  'gopher://127.0.0.1:6379/_x',
  'javascript:alert(1)',
  'data:text/plain,x',
  '//127.0.0.1/',
  'http://',
  'http://a..invalid/',
  `http://127.0.0.1:9/${'a'.repeat(3_000)}`,
  'http://１２７.0.0.1/',
  'http://xn--a.invalid/',
  'http://127.0.0.1:9/#%00',
] as const;

export function segment(random: Random): string {
  return random.pick([
    () => encodeURIComponent(random.pick(hostileTexts).toWellFormed()) || '%20',
    () =>
      random.pick([
        '%',
        '%zz',
        '%ff',
        '%2e%2e',
        '..',
        '.',
        '%00',
        '%0d%0a',
        '%ed%a0%80',
        '%2F',
        'tasks',
        'agents',
        'v1',
      ]),
    () => '01890000-0000-7000-8000-000000000000',
    () => 'a'.repeat(1 + random.whole(2_000)),
    () => 'echo@default',
    () => 'echo%40acme',
  ])();
}

export function spoiledPath(path: string, random: Random): string {
  return random.pick([
    () => path.toUpperCase(),
    () => `${path}/`,
    () => `${path}//`,
    () => path.replace(/[a-z](?=[a-z]*$)/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
    () => path.replace(':', random.pick(['%3A', '::', ':%00', ''])),
    () => path.replace(/[0-9a-f-]{36}/, () => segment(random)),
    () => `${path}:${random.pick(['cancel', 'subscribe', 'send', ''])}`,
    () => `${path}/${segment(random)}`,
    () => path.replaceAll('/', '\\'),
    () => `${path}%2f..%2f..`,
    () => `${path}${'/x'.repeat(3_000)}`,
  ])();
}

export function queryOf(query: Record<string, unknown>, random: Random): string {
  const pairs = Object.entries(query).map(([name, value]) => {
    const text = random.chance(0.75)
      ? encodeURIComponent(String(value))
      : encodeURIComponent(random.pick(hostileTexts).toWellFormed());
    return random.chance(0.9)
      ? `${name}=${text}`
      : random.pick([
          `${name}[]=${text}`,
          `${name}[__proto__]=${text}`,
          `${name}`,
          `${name}=%`,
          `${name}=${text}&${name}=2`,
        ]);
  });
  if (random.chance(0.1))
    pairs.push(
      random.pick([
        'A2A-Version=1.0',
        'A2A-Version=7',
        'A2A-Version=%00',
        'page_size=3',
        '__proto__=1',
        'historyLength=1e400',
        'pageSize=1'.repeat(500),
        '%',
        '=',
        '&&&',
      ]),
    );
  return pairs.length > 0 ? `?${pairs.join('&')}` : '';
}

export const headerValues: readonly (readonly [string, readonly string[]])[] = [
  [
    'A2A-Version',
    [
      '1.0',
      '1.0',
      '0.3',
      '0.2.5',
      '',
      '1.0.7',
      ' 1.0 ',
      '9.9',
      '1',
      '__proto__',
      '1.0, 0.3',
      '\u00e9',
      '9'.repeat(3_000),
    ],
  ],
  ['A2A-Extensions', ['https://example.com/extension', ',,,', '\u00ff', 'x,'.repeat(2_000)]],
  ['X-A2A-Extensions', ['https://example.com/extension']],
  ['X-A2A-Timeout', ['1', '1', '2', '0', '-1', '301', '1e2', '9'.repeat(30), 'x', '']],
  [
    'Last-Event-ID',
    [
      '0',
      '1',
      '2',
      '5',
      '-1',
      '',
      '1.5',
      '1e3',
      '999999999',
      '2147483647',
      '2147483648',
      '9007199254740993',
      '1e300',
      'x',
      '0x1',
      ' 3',
    ],
  ],
  [
    'Idempotency-Key',
    ['key-1', 'key-2', 'key-3', '', ' ', 'k'.repeat(256), '\u00e9\u00ff', "' or 1=1 --", '__proto__'],
  ],
  ['Accept', ['text/event-stream', 'application/a2a+json', 'application/json', '*/*;q=0', 'text/html', ',,']],
  ['X-Request-Id', ['req-1', '\u00e9', 'r'.repeat(200), '<script>']],
  ['traceparent', ['00-zz', '00-00000000000000000000000000000000-0000000000000000-00']],
  ['x-rialto-depth', ['0', '2', '3', '1e9', '-1', 'x']],
  ['Content-Encoding', ['identity', 'gzip']],
];
