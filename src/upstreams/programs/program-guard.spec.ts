import type { Settings } from '../../platform/config/settings.js';
import type { Logger } from '../../platform/telemetry/logger.js';
import { ProgramGuard, type Machine } from './program-guard.js';

interface Given {
  readonly isolation?: 'required' | 'preferred';
  readonly user?: { uid: number; gid: number };
  readonly limits?: object;
  readonly machine?: Partial<Machine>;
}

const tools = { setpriv: true, prlimit: true, unshare: true };

function guardOf({ isolation = 'required', user, limits, machine }: Given) {
  const warn = jest.fn();
  const settings = {
    RIALTO_STDIO_ISOLATION: isolation,
    RIALTO_STDIO_USER: user,
    RIALTO_STDIO_COMMANDS: 'catalogue',
    configFile: { mcpServers: [], stdioCommands: [{ name: 'files', limits }] },
  } as unknown as Settings;
  class OnThisMachine extends ProgramGuard {
    protected override readonly machine = { tools, isRoot: false, canRead: async () => false, ...machine };
  }
  return { warn, guard: new OnThisMachine(settings, { warn } as unknown as Logger) };
}

const read = async () => true;

describe('ProgramGuard', () => {
  it('picks the best isolation that keeps programs from reading this process, and tries each once', async () => {
    const tried: string[] = [];
    const canRead = async ([first = 'none']: readonly string[]) => {
      tried.push(first);
      if (first.endsWith('unshare')) throw new Error('unshare: Operation not permitted');
      return false;
    };
    const { guard } = guardOf({ machine: { canRead } });
    await guard.onModuleInit();
    expect((await guard.wordsFor({ files: 7 })).join(' ')).toMatch(
      /^\/usr\/bin\/setpriv .*--no-new-privs.* -- \/usr\/bin\/prlimit .*--nofile=7/,
    );
    await guard.wordsFor(undefined);
    expect(tried).toEqual(['/usr/bin/unshare', '/usr/bin/setpriv']);
  });

  it('refuses the start when isolation is required and impossible, and warns when it is only preferred', async () => {
    const strict = guardOf({ machine: { canRead: read } }).guard;
    await expect(strict.onModuleInit()).rejects.toMatchObject({
      problems: [expect.stringContaining('could read the memory of the gateway')],
    });
    await expect(strict.wordsFor(undefined)).rejects.toMatchObject({ code: 'unprocessable' });
    const { guard, warn } = guardOf({ isolation: 'preferred', machine: { canRead: read } });
    await guard.onModuleInit();
    expect((await guard.wordsFor(undefined))[0]).toBe('/usr/bin/unshare');
    await guard.wordsFor(undefined);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it('refuses the start when no program can run as the configured user', async () => {
    const canRead = () => Promise.reject(new Error('setpriv: setresuid failed'));
    await expect(
      guardOf({ user: { uid: 5, gid: 6 }, machine: { canRead } }).guard.onModuleInit(),
    ).rejects.toMatchObject({
      problems: [expect.stringContaining('RIALTO_STDIO_USER')],
    });
  });

  it('refuses the start with limits that this machine cannot enforce', async () => {
    const refusal = (given: Given) => guardOf(given).guard.onModuleInit();
    const without = { ...tools, prlimit: false };
    await expect(refusal({ limits: { files: 5 }, machine: { tools: without } })).rejects.toMatchObject({
      problems: [expect.stringMatching(/files need .*prlimit/)],
    });
    await expect(refusal({ machine: { tools: without } })).resolves.toBeUndefined();
    await expect(refusal({ limits: { processes: 5 }, machine: { isRoot: true } })).rejects.toMatchObject({
      problems: [expect.stringContaining('RIALTO_STDIO_USER')],
    });
    await expect(
      refusal({ limits: { processes: 5 }, machine: { isRoot: true }, user: { uid: 5, gid: 6 } }),
    ).resolves.toBeUndefined();
  });
});
