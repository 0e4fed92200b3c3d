import { setTimeout as wait } from 'node:timers/promises';
import { behindStanding } from './upstream-transports.js';

describe('behindStanding', () => {
  const sent: string[] = [];
  let open: () => void = () => undefined;
  const out = behindStanding((_input, init) => {
    sent.push(init!.method!);
    const answer = new Response(null, { status: 202 });
    return init!.method === 'GET' ? new Promise((done) => (open = () => done(answer))) : Promise.resolve(answer);
  });
  const send = (method: string) => out('http://127.0.0.1/mcp', { method });

  it('delays calls until the first standing stream of the session is open', async () => {
    await send('POST');
    const stream = send('GET');
    const call = send('POST');
    await wait(50);
    expect(sent).toEqual(['POST', 'GET']);
    open();
    await Promise.all([stream, call]);
    expect(sent).toEqual(['POST', 'GET', 'POST']);
    void send('GET');
    await send('POST');
    expect(sent).toEqual(['POST', 'GET', 'POST', 'GET', 'POST']);
  });
});
