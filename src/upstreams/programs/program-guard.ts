import { execFile } from 'node:child_process';
import { chmodSync, chownSync } from 'node:fs';
import { promisify } from 'node:util';
import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { SETTINGS, SettingsError, type Settings } from '../../platform/config/settings.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { isExecutable, isolationsFor, tools, wordsBefore, type Isolation, type StdioCommand } from './stdio-command.js';

/** What the checks depend on of the machine. */
export interface Machine {
  /** Programs of util-linux. */
  readonly tools: { readonly setpriv: boolean; readonly prlimit: boolean; readonly unshare: boolean };
  readonly isRoot: boolean;
  /** Whether a program that is started after these words can read the memory or the environment of this process; rejects when none can be. */
  canRead(words: readonly string[]): Promise<boolean>;
}

const execute = promisify(execFile);
const trialMs = 20_000;
/** Of a program: prints what it could read of the process whose id it is given. */
const trial = `
  const { openSync, readFileSync } = require('node:fs');
  const tries = [() => openSync(file('mem')), () => readFileSync(file('environ'))];
  const file = (name) => '/proc/' + process.argv[1] + '/' + name;
  const succeeds = (read) => { try { read(); return true; } catch { return false; } };
  process.stdout.write(tries.some(succeeds) ? 'read' : 'refused');`;

const thisMachine: Machine = {
  tools: {
    setpriv: isExecutable(tools.setpriv),
    prlimit: isExecutable(tools.prlimit),
    unshare: isExecutable(tools.unshare),
  },
  isRoot: process.getuid?.() === 0,
  async canRead(words) {
    const [program = '', ...args] = [...words, process.execPath, '-e', trial, String(process.pid)];
    const { stdout } = await execute(program, args, { env: { PATH: '/usr/bin:/bin' }, timeout: trialMs, cwd: '/' });
    return stdout !== 'refused';
  },
};

const hint = 'give it a container of its own and register its url, or see RIALTO_STDIO_ISOLATION';

/**
 * Keeps the programs of MCP servers from what the gateway holds (reliability-security 4.11): each is started with words before its own that
 * take its privileges, put it into a user namespace or make it another user, and limit what it uses. That this process cannot be read is
 * tried, once; the memory of the gateway holds every secret of every org.
 */
@Injectable()
export class ProgramGuard implements OnModuleInit {
  private isolation?: Promise<Isolation>;
  /** Replaced by tests. */
  protected readonly machine: Machine = thisMachine;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Refuses to start what could not keep its settings: throws SettingsError. */
  async onModuleInit(): Promise<void> {
    const problems = this.unenforceable();
    if (this.isRequired && this.mayStartPrograms)
      await this.isolationOf().catch((error: unknown) => problems.push((error as Error).message));
    if (problems.length > 0) throw new SettingsError(problems);
  }

  /** What stands before the words of a program. Throws `unprocessable` where programs have to be kept apart and cannot be. */
  async wordsFor(limits: StdioCommand['limits']): Promise<string[]> {
    const isolation = await this.isolationOf();
    const isOwnCount = isolation.kind === 'namespace' || isolation.kind === 'user' || this.settings.production;
    return wordsBefore({ isolation, prlimit: this.machine.tools.prlimit, isOwnCount }, limits);
  }

  /** Gives a folder to the user that programs run as. */
  handOver(folder: string): void {
    const user = this.settings.RIALTO_STDIO_USER;
    if (!user) return;
    chownSync(folder, user.uid, user.gid);
    chmodSync(folder, 0o700);
  }

  private get isRequired(): boolean {
    return this.settings.RIALTO_STDIO_ISOLATION === 'required';
  }

  private get mayStartPrograms(): boolean {
    const { configFile, RIALTO_STDIO_COMMANDS } = this.settings;
    const declared = configFile.mcpServers.some(({ command }) => command !== undefined);
    return RIALTO_STDIO_COMMANDS === 'any' || configFile.stdioCommands.length > 0 || declared;
  }

  private isolationOf(): Promise<Isolation> {
    // What went wrong may have been the machine's moment: who comes next tries anew.
    this.isolation ??= this.tried().catch((error: unknown) => {
      this.isolation = undefined;
      throw error;
    });
    return this.isolation;
  }

  private async tried(): Promise<Isolation> {
    let usable: Isolation | undefined;
    for (const isolation of isolationsFor(this.machine.tools, this.settings.RIALTO_STDIO_USER)) {
      const canRead = await this.machine.canRead(isolation.words).catch(() => undefined);
      if (canRead === false) return isolation;
      if (canRead) usable ??= isolation;
    }
    const message = usable
      ? 'RIALTO_STDIO_ISOLATION: on this machine programs of MCP servers could read the memory of the gateway'
      : 'RIALTO_STDIO_USER: no program can be started as that user';
    if (this.isRequired || !usable) throw new RialtoError('unprocessable', { message, hint });
    this.log.warn(`${message}; start only programs that you trust as you trust the gateway`);
    return usable;
  }

  private unenforceable(): string[] {
    const limited = this.settings.configFile.stdioCommands.filter(({ limits }) => limits);
    const { isRoot } = this.machine;
    if (!this.machine.tools.prlimit && limited.length > 0)
      return [`stdioCommands: the limits of ${limited[0]!.name} need ${tools.prlimit} (util-linux), which is not here`];
    const counted = limited.find(({ limits }) => limits!.processes !== undefined);
    if (isRoot && counted && !this.settings.RIALTO_STDIO_USER)
      return [
        `stdioCommands: the processes of ${counted.name} cannot be limited while they are root’s; set RIALTO_STDIO_USER`,
      ];
    return [];
  }
}
