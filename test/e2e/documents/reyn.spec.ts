import { startExampleWorld, type ExampleWorld } from '../../support/documents/example-world.js';
import { publish } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

/* Runs the examples of Reyn's A2A page. Its messages have neither a role nor an id. */
describe('the examples of Reyn', () => {
  let world: ExampleWorld;
  let sink: WebhookSink;

  beforeAll(async () => {
    world = await startExampleWorld('reyn.example.com');
    sink = await startWebhookSink();
    const executor = { kind: 'echo', ask: 'Shall I proceed?' };
    await publish(world.gateway, { name: 'reviewer', description: 'Reviews changes.', executor });
    await publish(world.gateway, { name: 'asleep', executor: { kind: 'echo', delayMs: 600_000 } });
  });
  afterAll(async () => {
    await world.close();
    await sink.close();
  });

  const post = (name: string, body: string) =>
    world.json(
      `curl https://reyn.example.com/a2a/agents/${name} -H "Authorization: Bearer $TOKEN" \\
        -H 'Content-Type: application/json' -d '${body}'`,
    );
  const get = (path: string) =>
    world.json(`curl -H "Authorization: Bearer $TOKEN" https://reyn.example.com/a2a/tasks/${path}`);
  const submission = `{
    "jsonrpc": "2.0", "id": 1, "method": "message/send",
    "params": {
      "message": {"parts": [{"kind": "text", "text": "review the PR"}]},
      "async_mode": true
    }
  }`;
  const answer = (id: string) => `{
    "jsonrpc": "2.0", "id": 2, "method": "message/send",
    "params": {
      "task_id": "${id}",
      "message": {"parts": [{"kind": "text", "text": "yes proceed"}]}
    }
  }`;
  const becomes = (id: string, status: string) =>
    eventually(
      () => get(id),
      (view) => view.status === status,
    );

  it('RY-02 RY-06 RY-08 RY-10 the index leads to the card', async () => {
    const { agents } = await world.json('curl https://reyn.example.com/a2a/agents');
    const { name, role, agentCardUrl } = agents.find((one: { name: string }) => one.name === 'reviewer');
    const card = await world.json(`curl ${agentCardUrl}`);
    expect(card).toMatchObject({ name, description: role, skills: [{ id: 'chat' }] });
    expect(card.capabilities).toMatchObject({ streaming: true, pushNotifications: true });
    expect(card.defaultInputModes).toContain('text/plain');
  });

  it('RY-14 RY-16 RY-17 RY-26 RY-27 submits, polls, is asked, answers, and reads the result', async () => {
    const { result } = await post('reviewer', submission);
    expect(result).toMatchObject({ kind: 'task', status: 'running', agent_name: 'reviewer' });
    expect(await becomes(result.id, 'input-required')).toMatchObject({
      run_id: result.id,
      question: 'Shall I proceed?',
      result: null,
      error: null,
    });
    expect((await post('reviewer', answer(result.id))).result).toMatchObject({ task_id: result.id, answered: true });
    expect(await becomes(result.id, 'completed')).toMatchObject({ run_id: result.id, result: 'yes proceed' });
  });

  it('RY-12 without async_mode the reply is the answer', async () => {
    const { result } = await post('reviewer', submission.replace(/,\s*"async_mode": true/, ''));
    expect(result.status).toMatchObject({
      state: 'input-required',
      message: { parts: [{ text: 'Shall I proceed?' }] },
    });
  });

  it('RY-23 RY-24 the stream of events ends with the run', async () => {
    const { result } = await post('reviewer', submission);
    await becomes(result.id, 'input-required');
    const [events] = await Promise.all([
      world.sh(`curl -N -H "Authorization: Bearer $TOKEN" https://reyn.example.com/a2a/tasks/${result.id}/events`),
      post('reviewer', answer(result.id)),
    ]);
    expect(events).toContain('"status":"input-required"');
    expect(events).toContain('"status":"completed"');
    expect(events.trim().split('\n\n').at(-1)).toContain('event: end');
  });

  it('RY-15 RY-33 a webhook_url gets each status', async () => {
    const { result } = await post('reviewer', submission.replace('"async_mode": true', `"webhook_url": "${sink.url}"`));
    expect(result).toMatchObject({ kind: 'task', status: 'running' });
    await becomes(result.id, 'input-required');
    await post('reviewer', answer(result.id));
    const posts = await eventually(
      () => Promise.resolve(sink.received.map(({ body }) => body)),
      (bodies) => bodies.at(-1)?.status === 'completed',
    );
    expect(posts.map(({ status }) => status)).toEqual(['running', 'input-required', 'running', 'completed']);
    expect(posts[1]).toMatchObject({ run_id: result.id, question: 'Shall I proceed?' });
  });

  it('RY-21 a run is canceled, and a second cancel answers alike', async () => {
    const { result } = await post('asleep', submission);
    const url = `https://reyn.example.com/a2a/tasks/${result.id}/cancel`;
    const cancel = `curl -X POST -H "Authorization: Bearer $TOKEN" ${url}`;
    expect((await world.json(cancel)).status).toBe('cancelled');
    expect((await world.json(cancel)).status).toBe('cancelled');
    expect((await get(result.id)).status).toBe('cancelled');
  });
});
