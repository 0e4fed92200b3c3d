import { execFile } from 'node:child_process';
import { chmodSync, chownSync } from 'node:fs';
import { promisify } from 'node:util';
import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { SETTINGS, SettingsError, type Settings } from '../../platform/config/settings.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { isExecutable, isolationsFor, tools, wordsBefore, type Isolation, type StdioCommand } from './stdio-command.js';

/** Facts about the machine that the checks depend on; replaced in tests. */
export interface Machine {
  /** Which programs of util-linux are installed. */
  readonly tools: { readonly setpriv: boolean; readonly prlimit: boolean; readonly unshare: boolean };
  readonly isRoot: boolean;
  /**
   * Returns whether a program started with this command prefix can read the memory or the environment of this process.
   * Rejects when no program can be started with it.
   */
  canRead(words: readonly string[]): Promise<boolean>;
}

const execute = promisify(execFile);
const trialMs = 20_000;
/**
 * Source of a test program. It gets a process id and prints whether it could read the memory or environment of that
 * process.
 */
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

const hint = 'run the MCP server in its own container and register its url, or see RIALTO_STDIO_ISOLATION';

/**
 * Isolates the programs of MCP servers from the secrets of the gateway (reliability-security 4.11). Each program is
 * started with a command prefix that drops its privileges, puts it into a user namespace or changes its user, and
 * limits its resources. The guard tests once that a program cannot read this process, because the memory of the gateway
 * holds the secrets of every org.
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

  /**
   * Checks the settings at start. Throws SettingsError when this machine cannot enforce the required isolation or the
   * limits.
   */
  async onModuleInit(): Promise<void> {
    const problems = this.unenforceableLimits();
    if (this.isRequired && this.mayStartPrograms)
      await this.isolationOf().catch((error: unknown) => problems.push((error as Error).message));
    if (problems.length > 0) throw new SettingsError(problems);
  }

  /**
   * Returns the command prefix for a program. Throws `unprocessable` when isolation is required and this machine cannot
   * provide it.
   */
  async wordsFor(limits: StdioCommand['limits']): Promise<string[]> {
    const isolation = await this.isolationOf();
    const isOwnCount = isolation.kind === 'namespace' || isolation.kind === 'user' || this.settings.production;
    return wordsBefore({ isolation, prlimit: this.machine.tools.prlimit, isOwnCount }, limits);
  }

  /** Makes a folder the property of the user that programs run as. */
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
    // The failure may be temporary: the next caller tries again.
    this.isolation ??= this.chooseIsolation().catch((error: unknown) => {
      this.isolation = undefined;
      throw error;
    });
    return this.isolation;
  }

  private async chooseIsolation(): Promise<Isolation> {
    let usable: Isolation | undefined;
    for (const isolation of isolationsFor(this.machine.tools, this.settings.RIALTO_STDIO_USER)) {
      const canRead = await this.machine.canRead(isolation.words).catch(() => undefined);
      if (canRead === false) return isolation;
      if (canRead) usable ??= isolation;
    }
    const message = usable
      ? 'RIALTO_STDIO_ISOLATION: on this machine, programs of MCP servers could read the memory of the gateway'
      : 'RIALTO_STDIO_USER: no program can be started as that user';
    if (this.isRequired || !usable) throw new RialtoError('unprocessable', { message, hint });
    this.log.warn(`${message}; start only programs that you trust as much as the gateway`);
    return usable;
  }

  private unenforceableLimits(): string[] {
    const limited = this.settings.configFile.stdioCommands.filter(({ limits }) => limits);
    const { isRoot } = this.machine;
    if (!this.machine.tools.prlimit && limited.length > 0)
      return [
        `stdioCommands: the limits of ${limited[0]!.name} need ${tools.prlimit} (util-linux), which is not installed`,
      ];
    const counted = limited.find(({ limits }) => limits!.processes !== undefined);
    if (isRoot && counted && !this.settings.RIALTO_STDIO_USER)
      return [
        `stdioCommands: the processes of ${counted.name} cannot be limited while they run as root; ` +
          'set RIALTO_STDIO_USER',
      ];
    return [];
  }
}
