import type { Settings } from '../../platform/config/settings.js';
import type { Logger } from '../../platform/telemetry/logger.js';
import { StdioCatalogue } from './stdio-catalogue.js';

describe('StdioCatalogue: programs that may be started', () => {
  function made(settings: { production: boolean; RIALTO_STDIO_COMMANDS: 'catalogue' | 'any' }) {
    const warn = jest.fn();
    const all = { ...settings, configFile: { stdioCommands: [] } } as unknown as Settings;
    const catalogue = new StdioCatalogue(all, { warn } as unknown as Logger);
    const program = { command: 'x', args: [] };
    const start = () => catalogue.commandOf({ transport: 'stdio', program, env: {} } as never).command;
    return { warn, start };
  }

  it('AE-17 allows only the programs of the operator in production, and warns when any program is allowed', () => {
    const usual = made({ production: true, RIALTO_STDIO_COMMANDS: 'catalogue' });
    expect(usual.start).toThrow(expect.objectContaining({ code: 'unprocessable' }));
    expect(usual.warn).not.toHaveBeenCalled();
    const any = made({ production: true, RIALTO_STDIO_COMMANDS: 'any' });
    expect(any.start()).toBe('x');
    expect(any.warn).toHaveBeenCalledWith(expect.stringContaining('RIALTO_STDIO_COMMANDS=any'));
    const development = made({ production: false, RIALTO_STDIO_COMMANDS: 'any' });
    expect(development.start()).toBe('x');
    expect(development.warn).not.toHaveBeenCalled();
  });
});
