import { dirname } from 'node:path';
import { argvOf, environmentOf, isThere } from './stdio-command.js';

describe('how a program is started', () => {
  const command = { command: '/opt/server', args: ['--root', 'a b'], env: { TOKEN: 't' }, cache: '/cache' };

  it('is held by what this machine has', () => {
    const none = { setpriv: false, prlimit: false };
    expect(argvOf(command, none)).toEqual(['/opt/server', '--root', 'a b']);
    const limits = { memoryMb: 1, processes: 2, cpuSeconds: 3, fileMb: 4, files: 5 };
    expect(argvOf({ ...command, limits }, { setpriv: true, prlimit: true }).join(' ')).toBe(
      'setpriv --pdeathsig KILL -- prlimit --core=0 --nofile=5 --as=1048576 --nproc=2 --cpu=3 --fsize=4194304 -- /opt/server --root a b',
    );
    expect(argvOf(command, { setpriv: false, prlimit: true })).toEqual([
      ...['prlimit', '--core=0', '--nofile=1024', '--'],
      ...['/opt/server', '--root', 'a b'],
    ]);
  });

  it('is looked for where it would be: by its path, in its folder, or among those of its PATH', () => {
    const [path, cwd] = [`/nowhere:${dirname(process.execPath)}`, dirname(process.execPath)];
    const there = (word: string, at: Partial<Parameters<typeof isThere>[1]> = {}) =>
      isThere({ command: word }, { path, cwd, ...at });
    expect([there('node'), there(process.execPath), there('./node')]).toEqual([true, true, true]);
    const absent = [there('node', { path: '/nowhere' }), there('node server.js'), there('./node', { cwd: '/' })];
    expect([...absent, there('/etc'), there('/etc/passwd')]).toEqual([false, false, false, false, false]);
  });

  it('has nothing of ours around it', () => {
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
