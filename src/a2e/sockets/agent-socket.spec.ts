import { EventEmitter } from 'node:events';
import type { CallContext } from '../../kernel/call-context.js';
import type { HeldSocket } from '../../platform/http/streams/held-socket.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { AgentSocket } from './agent-socket.js';

/** Fake socket that records the written messages. */
class RecordingSocket extends EventEmitter {
  readonly written: { method?: string; server_id?: string }[] = [];
  write(text: string): void {
    this.written.push(JSON.parse(text) as { method?: string });
  }
}

const server = (id: string) => ({ row: { id, serverId: `s-${id}` } }) as RegisteredServer;

describe('AgentSocket', () => {
  const connected = () => {
    const socket = new RecordingSocket();
    const released: string[] = [];
    const agent = new AgentSocket(
      {} as CallContext,
      socket as unknown as HeldSocket,
      {},
      {
        sent: () => undefined,
        watch: (_server, uri) => Promise.resolve(() => void released.push(uri)),
      },
    );
    agent.servers.set('a', { serverId: 's-a' });
    agent.servers.set('b', { serverId: 's-b' });
    return { agent, socket, released };
  };

  it('limits the pushes of one noisy server, and still passes on those of others', () => {
    const { agent, socket } = connected();
    for (let count = 0; count < 700; count++) agent.passNotification('a', 'notifications/loud', {});
    agent.passNotification('b', 'notifications/quiet', {});
    agent.passNotification('unseen', 'notifications/quiet', {});
    expect(socket.written.filter(({ server_id }) => server_id === 's-a')).toHaveLength(600);
    expect(socket.written.at(-1)).toMatchObject({ server_id: 's-b', method: 'notifications/quiet' });
  });

  it('limits concurrent messages and watched resources', async () => {
    const { agent, released } = connected();
    let end = (): void => undefined;
    const until = new Promise<void>((resolve) => (end = resolve));
    const signals: AbortSignal[] = [];
    for (let count = 0; count < 64; count++)
      agent.runMessage((ctx) => {
        signals.push(ctx.signal!);
        return until;
      });
    expect(() => agent.runMessage(() => until)).toThrow('64 messages');
    end();
    await until;
    await new Promise(setImmediate);
    expect(() => agent.runMessage(() => until)).not.toThrow();
    for (let count = 0; count < 100; count++) await agent.subscribe(server('a'), `a://${count}`);
    await agent.subscribe(server('a'), 'a://1');
    await expect(agent.subscribe(server('a'), 'a://more')).rejects.toThrow('100 resources');
    agent.unsubscribe(server('a'), 'a://1');
    expect(released).toEqual(['a://1']);
    expect(new Set(signals).size).toBe(64);
  });

  it('aborts its work and releases all watches when it disconnects', async () => {
    const { agent, socket, released } = connected();
    let signal: AbortSignal | undefined;
    agent.runMessage((ctx) => {
      signal = ctx.signal;
      return new Promise(() => {});
    });
    await agent.subscribe(server('a'), 'a://x');
    const late = agent.subscribe(server('a'), 'a://late');
    socket.emit('close');
    await late;
    expect([signal!.aborted, released, agent.servers.size]).toEqual([true, ['a://x', 'a://late'], 0]);
  });

  it('watches on the new connection after a credential change, and stops watches without permission', async () => {
    const { agent, released } = connected();
    for (const uri of ['a://kept', 'a://gone']) await agent.subscribe(server('a'), uri);
    await agent.subscribe(server('b'), 'b://other');
    await agent.recheck((_server, uri) => Promise.resolve(uri !== 'a://gone'), 'a');
    expect(released).toEqual(['a://kept', 'a://gone']);
    agent.unsubscribe(server('a'), 'a://kept');
    expect(released).toEqual(['a://kept', 'a://gone', 'a://kept']);
  });
});
