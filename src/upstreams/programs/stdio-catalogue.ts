import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { allowsAnyProgram, SETTINGS, type Settings } from '../../platform/config/settings.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import type { StdioCommand } from './stdio-command.js';
import type { Endpoint } from '../storage/sealed-endpoints.js';

/** Variables by which the C library loads code: that code would run before a program is kept apart. Source: ld.so(8), iconv(1), locale(7). */
const actsOnLoading = /^(?:LD_.*|GCONV_PATH|GLIBC_TUNABLES|LOCPATH)$/;

/** Which programs may be started: those that the operator has written down, and where the operator says so any (requirements 1.8). */
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

  /** Throws `unprocessable` for a program that may not be started so. */
  commandOf({
    program,
    env,
    isDeclared = false,
  }: Extract<Endpoint, { transport: 'stdio' }>): Omit<StdioCommand, 'cache'> {
    const loading = Object.keys(env).find((name) => actsOnLoading.test(name));
    if (loading !== undefined)
      throw refused(`takes no variable ${loading}`, 'it would act on what keeps a program apart');
    const { command, args, cwd } = program;
    const entry = this.settings.configFile.stdioCommands.find(({ name }) => name === command);
    if (!entry && (isDeclared || this.mayBeAny)) return { command, args, cwd, env };
    if (!entry)
      throw refused(
        'is no program that the operator has allowed',
        'stdioCommands in the configuration file names those that are',
      );
    if (args.length > 0 || cwd !== undefined) throw refused('has its arguments and its folder from the operator');
    const foreign = Object.keys(env).find((name) => !entry.env.includes(name));
    if (foreign !== undefined) throw refused(`takes no variable ${foreign}`);
    return { ...entry, env };
  }
}

function refused(what: string, hint?: string): RialtoError {
  return new RialtoError('unprocessable', { message: `this command ${what}`, hint });
}
