// The official SDK's server with the echo agent of the benchmark: a task, working, one artifact, completed. With a
// database URL as argument it stores tasks in its PostgreSQL store, else in memory.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { AgentCard, Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { DatabaseTaskStore } from '@a2a-js/sdk/server/database';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';

const databaseUrl = process.argv[2];
const store = databaseUrl
  ? new DatabaseTaskStore(
      new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: databaseUrl, max: 10 }) }) }),
    )
  : new InMemoryTaskStore();

const executor = {
  async execute({ taskId, contextId, userMessage }, bus) {
    const now = () => new Date().toISOString();
    const status = (state, message) => ({ state, message, timestamp: now() });
    bus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: status(TaskState.TASK_STATE_SUBMITTED),
        history: [userMessage],
        artifacts: [],
        metadata: undefined,
      }),
    );
    const update = (state, message) =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, message), metadata: undefined }));
    update(TaskState.TASK_STATE_WORKING);
    bus.publish(
      AgentEvent.artifactUpdate({
        taskId,
        contextId,
        artifact: { artifactId: 'echo', name: 'echo', description: '', parts: userMessage.parts, extensions: [] },
        append: false,
        lastChunk: true,
      }),
    );
    update(TaskState.TASK_STATE_COMPLETED, {
      messageId: randomUUID(),
      contextId,
      taskId,
      role: Role.ROLE_AGENT,
      parts: userMessage.parts,
      extensions: [],
      referenceTaskIds: [],
    });
    bus.finished();
  },
  async cancelTask() {},
};

const app = express();
const server = createServer(app);
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const card = AgentCard.fromJSON({
    name: 'echo',
    description: 'Repeats the message.',
    version: '1.0.0',
    supportedInterfaces: [{ url: `${url}/`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'chat', name: 'Chat', description: 'Talks.', tags: [] }],
  });
  const requestHandler = new DefaultRequestHandler(card, store, executor);
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  console.log(`ready ${url}`);
});
process.on('SIGTERM', () => process.exit(0));
