import { RialtoError } from '../../kernel/errors.js';
import { registrationOf } from './registration.js';

const refused = (payload: object): RialtoError => {
  try {
    registrationOf(payload as never);
  } catch (error) {
    return error as RialtoError;
  }
  throw new Error('it was accepted');
};

describe('registrationOf', () => {
  it('AE-16 AE-17 AE-19 AE-23 reads the members of the reference, at the top level or in a config', () => {
    const program = { server_id: 's', cmd: ['node', 'x.mjs'], cwd: '/srv', env: { A: 'b' }, timeout: 2.5 };
    const read = { id: 's', command: 'node', args: ['x.mjs'], cwd: '/srv', env: { A: 'b' }, timeoutMs: 2_500 };
    expect(registrationOf(program)).toEqual(read);
    expect(registrationOf({ config: program })).toEqual(read);
    expect(registrationOf({ cmd: 'node', args: ['x'], transport: 'STDIO' })).toEqual({
      command: 'node',
      args: ['x'],
      transport: 'stdio',
    });
    expect(registrationOf({ url: 'ws://x', transport: 'WS', headers: { a: 'b' } })).toMatchObject({
      transport: 'websocket',
      headers: { a: 'b' },
    });
    expect(
      registrationOf({ url: 'http://x', auto_reconnect: false, tool_allow_list: ['t'], resource_allow_list: ['u'] }),
    ).toEqual({
      url: 'http://x',
      autoReconnect: false,
      toolAllowList: ['t'],
      resourceAllowList: ['u'],
    });
  });

  it('treats null and empty members as absent, and ignores unknown members', () => {
    const defaults = { cmd: [], cwd: null, env: {}, headers: {}, tool_allow_list: [], name: '', color: 'red' };
    expect(registrationOf({ url: 'http://x', ...defaults })).toEqual({ url: 'http://x' });
  });

  it.each([
    [{}, 'url'],
    [{ url: 'http://x', transport: 'pigeon' }, 'transport'],
    [{ url: 'http://x', timeout: '3' }, 'timeout'],
    [{ url: 'http://x', timeout: 0.01 }, 'timeout'],
    [{ url: 'http://x', server_id: 'No Such' }, 'server_id'],
    [{ url: 'http://x', cmd: 'node' }, 'url'],
    [{ cmd: 'node', args: 'x' }, 'args'],
    [{ cmd: [7] }, 'cmd'],
    [{ url: 'http://x', config: 7 }, 'config'],
  ])('AE-16 refuses %j and names the member as it was sent', (payload, field) => {
    expect(refused(payload)).toMatchObject({ code: 'invalid_params', violations: [{ field }] });
  });

  it.each([-1, 0.05, 3_601])('refuses a timeout of %d with the limits in seconds', (timeout) => {
    const [violation] = refused({ url: 'http://x', timeout }).violations ?? [];
    expect(violation?.description).toBe('must be a number of seconds from 0.1 to 3600');
  });

  it('refuses text that cannot be stored', () => {
    expect(refused({ url: 'http://x', name: 'a\0b' }).code).toBe('invalid_params');
  });
});
