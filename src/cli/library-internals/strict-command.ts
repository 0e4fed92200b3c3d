import { Command, type Option } from 'commander';

/**
 * Command that reports a misspelled option as unknown, instead of the required option that is missing because of it.
 * Commander has no hook for this, so the class overrides a method and reads members that its types do not declare.
 *
 * Missing public API: a check for unknown options before the check for missing ones, or a hook between the two.
 * Canary test: `strict-command.spec.ts`.
 */
export class StrictCommand extends Command {
  private root: StrictCommand = this;

  override createCommand(name?: string): StrictCommand {
    return Object.assign(new StrictCommand(name), { root: this.root });
  }

  // Commander checks for missing options first; it calls this method for each.
  protected missingMandatoryOptionValue(option: Option): void {
    const { rawArgs } = this.root as unknown as { rawArgs: readonly string[] };
    const flags = rawArgs.map((word) => word.split('=')[0]!).filter((word) => /^--\w/.test(word));
    const unknown = flags.find((flag) => flag !== '--help' && !this.options.some((known) => known.long === flag));
    if (unknown !== undefined) (this as unknown as { unknownOption(flag: string): void }).unknownOption(unknown);
    else
      this.error(`error: required option '${option.flags}' not specified`, {
        code: 'commander.missingMandatoryOptionValue',
      });
  }
}
