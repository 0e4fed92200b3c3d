import { checkUrl, isPublicAddress, mayConnect, parseAllowList, targetOf, type UrlRules } from './address.js';

const strict: UrlRules = { allow: parseAllowList(''), httpsOnly: false };
const rules = (allow: string, more: Partial<UrlRules> = {}): UrlRules => ({
  ...strict,
  allow: parseAllowList(allow),
  ...more,
});

const loopback = [
  'http://127.0.0.1/',
  'http://127.0.0.1:80/',
  'http://127.255.255.254/',
  'http://127.1/',
  'http://127.0.1/',
  'http://2130706433/',
  'http://0x7f000001/',
  'http://0x7f.1/',
  'http://0x7f.0x0.0x0.0x1/',
  'http://0177.0.0.1/',
  'http://017700000001/',
  'http://0177.0x0.0.1/',
  'http://127.0.0.1./',
  'http://0x7f000001./',
  'http://127。0。0。1/',
  'http://１２７.０.０.１/',
  'http://①②⑦.0.0.1/',
  'http:127.0.0.1',
  'http:///127.0.0.1',
  'http:\\\\127.0.0.1\\',
  ' http://127.0.0.1',
  'http://127.0.0.1\t/',
  'http://127.0.0.1\\@example.com/',
  'http://%31%32%37.0.0.1/',
  'http://[::1]/',
  'http://[0:0:0:0:0:0:0:1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[0:0:0:0:0:ffff:127.0.0.1]/',
  'http://[::127.0.0.1]/',
  'http://[::ffff:0:127.0.0.1]/',
  'https://[::1]:8443/',
];
const special = [
  'http://0/',
  'http://0.0.0.0/',
  'http://[::]/',
  'http://０/',
  'http://10.0.0.1/',
  'http://10.1/',
  'http://167772161/',
  'http://012.0.0.1/',
  'http://172.16.0.1/',
  'http://172.31.255.255/',
  'http://192.168.0.1/',
  'http://0xc0a80001/',
  'http://[::ffff:192.168.0.1]/',
  'http://169.254.169.254/latest/meta-data/',
  'http://2852039166/',
  'http://0xa9fea9fe/',
  'http://0251.0376.0251.0376/',
  'http://169.254.43518/',
  'http://[::ffff:169.254.169.254]/',
  'http://[64:ff9b::169.254.169.254]/',
  'http://[64:ff9b::a9fe:a9fe]/',
  'http://[64:ff9b:1::7f00:1]/',
  'http://[2002:7f00:1::]/',
  'http://[2002:a9fe:a9fe::1]/',
  'http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/',
  'http://[fe80::1]/',
  'http://[fec0::1]/',
  'http://[fc00::1]/',
  'http://[fd00:ec2::254]/',
  'http://[ff02::1]/',
  'http://[2001:db8::1]/',
  'http://[3fff::1]/',
  'http://[100::1]/',
  'http://[100:0:0:1::1]/',
  'http://[5f00::1]/',
  'http://[4000::1]/',
  'http://[2001:20::1]/',
  'http://100.64.0.1/',
  'http://100.127.255.255/',
  'http://168.63.129.16/',
  'http://0xa83f8110/',
  'http://192.0.0.192/',
  'http://192.0.2.1/',
  'http://192.88.99.1/',
  'http://198.18.0.1/',
  'http://198.51.100.1/',
  'http://203.0.113.1/',
  'http://224.0.0.1/',
  'http://239.255.255.250:1900/',
  'http://240.0.0.1/',
  'http://255.255.255.255/',
];
const names = [
  'http://localhost/',
  'http://LOCALHOST:3000/',
  'http://localhost./',
  'http://lo%63alhost/',
  'http://ⓛocalhost/',
  'http://a.localhost/',
  'http://a.localhost./',
  'http://localhost.localdomain/',
  'http://ip6-localhost/',
];
const broken = [
  ['http://user@example.com/', 'userinfo'],
  ['http://:secret@example.com/', 'userinfo'],
  ['http://1.1.1.1&@127.0.0.1#@1.1.1.1/', 'userinfo'],
  ['http://example.com%00.evil.test/', 'malformed'],
  ['http://127.0.0.1%00/', 'malformed'],
  ['http://[fe80::1%25eth0]/', 'malformed'],
  ['http://256.1.1.1/', 'malformed'],
  ['http://1.2.3.4.5/', 'malformed'],
  ['http://', 'malformed'],
  ['', 'malformed'],
  ['//example.com/', 'malformed'],
  ['file:///etc/passwd', 'scheme'],
  ['gopher://example.com:70/_x', 'scheme'],
  ['ftp://example.com/', 'scheme'],
  ['ws://example.com/', 'scheme'],
  ['data:text/plain,x', 'scheme'],
  ['javascript:alert(1)', 'scheme'],
  ['blob:http://example.com/1', 'scheme'],
] as const;

describe('checkUrl', () => {
  it.each([...loopback, ...special])('AN-39 abuse 20: refuses the address in %j', (url) => {
    expect(checkUrl(url, strict)).toBe('private_address');
  });

  it.each(names)('AN-39 abuse 20: refuses the local name in %j', (url) => {
    expect(checkUrl(url, strict)).toBe('local_name');
  });

  it.each(broken)('AN-39 abuse 20: refuses %j as %s', (url, refusal) => {
    expect(checkUrl(url, strict)).toBe(refusal);
  });

  it.each([
    'https://example.com/',
    'http://1.1.1.1/',
    'https://[2606:4700::1111]/',
    'https://bücher.example/',
    'http://a_b.example:8080/x?y#z',
  ])('allows %j', (url) => {
    expect(checkUrl(url, strict)).toBeUndefined();
  });

  it('AN-39: requires https and a listed port, except for allow-listed targets', () => {
    const production = rules('agent.internal,http://other.internal:8080,10.0.0.0/8', { httpsOnly: true, ports: [443] });
    expect(checkUrl('http://example.com/', production)).toBe('https_required');
    expect(checkUrl('https://example.com:8443/', production)).toBe('port');
    expect(checkUrl('https://example.com/', production)).toBeUndefined();
    expect(checkUrl('http://agent.internal:9/', production)).toBeUndefined();
    expect(checkUrl('http://other.internal:8080/', production)).toBeUndefined();
    expect(checkUrl('http://other.internal:8081/', production)).toBe('https_required');
    expect(checkUrl('http://10.1.2.3:8080/', production)).toBeUndefined();
    expect(checkUrl('http://1.1.1.1/', production)).toBe('https_required');
  });

  it('AN-39: a local name follows the loopback range of the allow list', () => {
    expect(checkUrl('http://localhost:3000/', rules('127.0.0.0/8'))).toBeUndefined();
    expect(checkUrl('http://localhost:3000/', rules('localhost'))).toBeUndefined();
    expect(checkUrl('http://localhost:3000/', rules('10.0.0.0/8'))).toBe('local_name');
  });
});

describe('isPublicAddress', () => {
  it.each(['1.1.1.1', '8.8.8.8', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '::ffff:1.1.1.1'])(
    '%s is public',
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );

  it.each([
    '',
    'example.com',
    '1',
    '0x7f.1',
    '127.1',
    '1.1.1.1/32',
    '::ffff:10.0.0.1',
    'fe80::1%eth0',
    '64:ff9b::808:808',
    '::808:808',
  ])('abuse 20: %j is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

describe('parseAllowList', () => {
  const may = (allow: string, url: string, address: string): boolean =>
    mayConnect(targetOf(new URL(url)), address, parseAllowList(allow));

  it('AN-39: reads hosts, wildcard hosts, addresses, CIDRs and origins', () => {
    const allow =
      ' Agent.Internal. , *.svc.cluster.local,10.0.0.0/8,127.0.0.1,::1,' +
      '[fd00::2],fd12::/16, http://127.0.0.2:8080/,https://api.internal,,';
    expect(may(allow, 'http://agent.internal:1/', '10.1.1.1')).toBe(true);
    expect(may(allow, 'http://agent.internal./', '192.168.0.1')).toBe(true);
    expect(may(allow, 'http://x.agent.internal/', '192.168.0.1')).toBe(false);
    expect(may(allow, 'http://a.ns.svc.cluster.local/', '192.168.0.1')).toBe(true);
    expect(may(allow, 'http://evilsvc.cluster.local/', '192.168.0.1')).toBe(false);
    expect(may(allow, 'http://any.test/', '10.255.0.1')).toBe(true);
    expect(may(allow, 'http://any.test/', '::ffff:10.255.0.1')).toBe(true);
    expect(may(allow, 'http://any.test/', '127.0.0.1')).toBe(true);
    expect(may(allow, 'http://any.test/', '127.0.0.2')).toBe(false);
    expect(may(allow, 'http://127.0.0.2:8080/x', '127.0.0.2')).toBe(true);
    expect(may(allow, 'https://127.0.0.2:8080/x', '127.0.0.2')).toBe(false);
    expect(may(allow, 'http://any.test/', '::1')).toBe(true);
    expect(may(allow, 'http://any.test/', 'fd00::2')).toBe(true);
    expect(may(allow, 'http://any.test/', 'fd12::9')).toBe(true);
    expect(may(allow, 'http://any.test/', 'fd13::9')).toBe(false);
    expect(may(allow, 'https://api.internal:443/', '192.168.0.1')).toBe(true);
    expect(may(allow, 'https://api.internal:444/', '192.168.0.1')).toBe(false);
  });

  it.each([
    '10.0.0.0/33',
    '10.0.0/8',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '::/129',
    '127.1',
    '0x7f000001',
    'host:80',
    'host/path',
    'http://host/path',
    'http://user@host',
    'http://',
    'ftp://host',
    'a b',
    '*',
    'a..b',
    '-x',
    '::ffff:10.0.0.0/104',
    'fe80::1%eth0',
  ])('AN-39: names the bad entry %j', (entry) => {
    expect(() => parseAllowList(`ok.internal,${entry}`)).toThrow(`"${entry}"`);
  });
});
