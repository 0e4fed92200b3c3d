import { dirname } from 'node:path';
import { environmentOf, isolationsFor, isThere, wordsBefore, type Isolation } from './stdio-command.js';

describe('command line and environment of a program', () => {
  const command = { command: '/opt/server', args: ['--root', 'a b'], env: { TOKEN: 't' }, cache: '/cache' };

  const none: Isolation = { kind: 'none', words: [] };

  it('puts the limits before the program: the default ones and the configured ones', () => {
    const words = (limits?: object, more = {}) =>
      wordsBefore({ isolation: none, prlimit: true, isOwnCount: true, ...more }, limits).join(' ');
    expect(words({ memoryMb: 1, processes: 2, cpuSeconds: 3, fileMb: 4, files: 5 })).toBe(
      '/usr/bin/prlimit --core=0 --nofile=5 --data=1048576 --cpu=3 --fsize=4194304 --nproc=2 --',
    );
    expect(words()).toBe(
      '/usr/bin/prlimit --core=0 --nofile=1024 --data=4294967296 --cpu=3600 --fsize=1073741824 --nproc=1024 --',
    );
    expect(words({}, { isOwnCount: false })).not.toContain('nproc');
    expect(words({ processes: 7 }, { isOwnCount: false })).toContain('--nproc=7');
    expect(words({}, { prlimit: false })).toBe('');
  });

  it('lists the isolations that this machine supports, best first', () => {
    const kinds = (tools: { setpriv: boolean; unshare: boolean }, user?: { uid: number; gid: number }) =>
      isolationsFor(tools, user).map(({ kind }) => kind);
    expect(kinds({ setpriv: true, unshare: true })).toEqual(['namespace', 'privileges', 'privileges', 'none']);
    expect(kinds({ setpriv: true, unshare: false })).toEqual(['privileges', 'privileges', 'none']);
    expect(kinds({ setpriv: false, unshare: true })).toEqual(['none']);
    expect(kinds({ setpriv: false, unshare: true }, { uid: 5, gid: 6 })).toEqual([]);
    const [first] = isolationsFor({ setpriv: true, unshare: true }, { uid: 5, gid: 6 });
    expect(first).toMatchObject({ kind: 'user', words: expect.arrayContaining(['--reuid=5', '--regid=6']) });
  });

  it('finds a program by its path, in its folder or in its PATH', () => {
    const [path, cwd] = [`/nowhere:${dirname(process.execPath)}`, dirname(process.execPath)];
    const there = (word: string, at: Partial<Parameters<typeof isThere>[1]> = {}) =>
      isThere({ command: word }, { path, cwd, ...at });
    expect([there('node'), there(process.execPath), there('./node')]).toEqual([true, true, true]);
    const absent = [there('node', { path: '/nowhere' }), there('node server.js'), there('./node', { cwd: '/' })];
    expect([...absent, there('/etc'), there('/etc/passwd')]).toEqual([false, false, false, false, false]);
  });

  it('passes no environment variable of the gateway to the program', () => {
    expect(environmentOf(command, '/home')).toEqual({
      PATH: expect.stringContaining('/usr/bin'),
      HOME: '/home',
      LANG: 'C.UTF-8',
      XDG_CACHE_HOME: '/cache',
      npm_config_cache: '/cache/npm',
      TOKEN: 't',
    });
  });
});
