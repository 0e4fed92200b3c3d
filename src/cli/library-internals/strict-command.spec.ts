import { StrictCommand } from './strict-command.js';

describe('a command with a required option', () => {
  const run = (...words: string[]): void => {
    const program = new StrictCommand('any').exitOverride().configureOutput({ writeErr: () => undefined });
    program.command('token').requiredOption('--sub <name>', 'subject').exitOverride();
    program.commands[0]!.configureOutput({ writeErr: () => undefined }).action(() => undefined);
    program.parse(words, { from: 'user' });
  };

  it('reports a misspelled option as unknown', () => {
    expect(() => run('token', '--sbu', 'kofi')).toThrow("unknown option '--sbu'");
  });

  it('reports the option when it is missing', () => {
    expect(() => run('token')).toThrow("required option '--sub <name>' not specified");
  });
});
