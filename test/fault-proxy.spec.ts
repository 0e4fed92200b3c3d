import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from './support/gateway/eventually.js';
import { FaultProxy } from './support/stubs/fault-proxy.js';

describe('the fault proxy', () => {
  let echo: Server;
  let proxy: FaultProxy;

  beforeEach(async () => {
    echo = createServer({ allowHalfOpen: true }, (socket) => socket.on('error', () => undefined).pipe(socket));
    echo.listen(0, '127.0.0.1');
    await once(echo, 'listening');
    proxy = await FaultProxy.start((echo.address() as AddressInfo).port);
  });
  afterEach(async () => {
    await proxy.close();
    echo.close();
  });

  const dial = async (): Promise<{ socket: Socket; got: () => string; ended: () => string }> => {
    const socket = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true });
    let [text, end] = ['', ''];
    socket.on('data', (bytes: Buffer) => void (text += bytes.toString()));
    socket.on('error', (error: NodeJS.ErrnoException) => void (end = error.code!));
    socket.on('end', () => void (end ||= 'end'));
    await once(socket, 'connect').catch(() => undefined);
    return { socket, got: () => text, ended: () => end };
  };
  const comes = (ask: () => string, text: string) =>
    eventually(
      () => ask(),
      (now) => now === text,
    );

  it('passes bytes, holds them back and releases them', async () => {
    const { socket, got } = await dial();
    socket.write('one ');
    await comes(got, 'one ');
    await proxy.set('blackhole');
    socket.write('two ');
    await wait(50);
    expect(got()).toBe('one ');
    await proxy.set('pass');
    await comes(got, 'one two ');
    socket.destroy();
    await eventually(
      () => proxy.open,
      (open) => open === 0,
    );
  });

  it('refuses connections, and listens on the same port again', async () => {
    const first = await dial();
    await proxy.set('refuse');
    await comes(first.ended, 'ECONNRESET');
    await comes((await dial()).ended, 'ECONNREFUSED');
    await proxy.set('pass');
    const { socket, got } = await dial();
    socket.write('again');
    await comes(got, 'again');
    socket.destroy();
  });

  it('delays, throttles, resets in the middle, and closes one half', async () => {
    const { socket, got, ended } = await dial();
    await proxy.set({ delayMs: 100 });
    let begun = performance.now();
    socket.write('late');
    await comes(got, 'late');
    expect(performance.now() - begun).toBeGreaterThan(90);
    await proxy.set({ bytesPerSecond: 100 });
    begun = performance.now();
    socket.write('0123456789');
    await comes(got, 'late0123456789');
    expect(performance.now() - begun).toBeGreaterThan(90);
    await proxy.set({ resetAfter: 3 });
    socket.write('abcdef');
    await comes(ended, 'ECONNRESET');
    await proxy.set('pass');
    const half = await dial();
    half.socket.write('x');
    await comes(half.got, 'x');
    await proxy.set('close-half');
    await comes(half.ended, 'end');
    expect(half.socket.writable).toBe(true);
    half.socket.destroy();
  });

  it('freezes existing connections, but not new ones', async () => {
    const old = await dial();
    proxy.freeze();
    old.socket.write('lost');
    const { socket, got } = await dial();
    socket.write('new');
    await comes(got, 'new');
    await wait(30);
    expect([old.got(), old.ended()]).toEqual(['', '']);
    socket.destroy();
    old.socket.destroy();
  });

  it('cuts a connection at a text, before the request or the answer arrives, for a given number of times', async () => {
    const received: string[] = [];
    echo.on('connection', (socket: Socket) => socket.on('data', (bytes: Buffer) => received.push(bytes.toString())));
    for (const loses of ['request', 'answer'] as const) {
      proxy.cut({ text: /commit/, loses });
      const { socket, got, ended } = await dial();
      socket.write(`begin ${loses} `);
      await comes(got, `begin ${loses} `);
      socket.write(`commit ${loses}`);
      await comes(ended, 'ECONNRESET');
      expect([got(), proxy.cuts]).toEqual([`begin ${loses} `, 1]);
    }
    expect(received).toEqual(['begin request ', 'begin answer ', 'commit answer']);
    const { socket, got } = await dial();
    socket.write('commit again');
    await comes(got, 'commit again');
    socket.destroy();
  });
});
