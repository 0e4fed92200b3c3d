import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { allowsAnyProgram, SETTINGS, type Settings } from '../../platform/config/settings.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import type { StdioCommand } from './stdio-command.js';
import type { Endpoint } from '../storage/sealed-endpoints.js';

/**
 * Variables that make the C library load code. That code would run before the program is isolated. Source: ld.so(8),
 * iconv(1), locale(7).
 */
const loaderVariable = /^(?:LD_.*|GCONV_PATH|GLIBC_TUNABLES|LOCPATH)$/;

/**
 * Decides which programs may be started: those listed by the operator, or any program when the operator allows it
 * (requirements 1.8).
 */
@Injectable()
export class StdioCatalogue {
  private readonly mayBeAny: boolean;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    @Inject(LOGGER) log: Logger,
  ) {
    this.mayBeAny = allowsAnyProgram(settings);
    if (settings.production && this.mayBeAny)
      log.warn('RIALTO_STDIO_COMMANDS=any: admins of every org start programs on the machine of this gateway');
  }

  /**
   * Returns the command of a server. Throws `unprocessable` for a program that is not allowed, or not with these
   * arguments.
   */
  commandOf({
    program,
    env,
    isDeclared = false,
  }: Extract<Endpoint, { transport: 'stdio' }>): Omit<StdioCommand, 'cache'> {
    const loaderName = Object.keys(env).find((name) => loaderVariable.test(name));
    if (loaderName !== undefined)
      throw refusedCommand(
        `does not accept the variable ${loaderName}`,
        'the variable would change how the gateway isolates programs; remove it',
      );
    const { command, args, cwd } = program;
    const entry = this.settings.configFile.stdioCommands.find(({ name }) => name === command);
    if (!entry && (isDeclared || this.mayBeAny)) return { command, args, cwd, env };
    if (!entry)
      throw refusedCommand(
        'is not a program that the operator has allowed',
        'stdioCommands in the configuration file lists the allowed programs',
      );
    if (args.length > 0 || cwd !== undefined)
      throw refusedCommand('gets its arguments and its folder from the operator; leave out args and cwd');
    const foreign = Object.keys(env).find((name) => !entry.env.includes(name));
    if (foreign !== undefined) throw refusedCommand(`does not accept the variable ${foreign}`);
    return { ...entry, env };
  }
}

function refusedCommand(what: string, hint?: string): RialtoError {
  return new RialtoError('unprocessable', { message: `this command ${what}`, hint });
}
