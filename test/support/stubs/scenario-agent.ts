import { randomUUID } from 'node:crypto';
import { Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from '@a2a-js/sdk';
import { AgentEvent, type ExecutionEventBus, type RequestContext } from '@a2a-js/sdk/server';
import { Gate, stepsAfter, type Step, type Wire } from '../clients/outside-work.js';
import { startSdkAgentV1, type SdkAgent } from './sdk-agents.js';

const stateOf: Record<string, string> = {
  progress: 'TASK_STATE_WORKING',
  ask: 'TASK_STATE_INPUT_REQUIRED',
  complete: 'TASK_STATE_COMPLETED',
  fail: 'TASK_STATE_FAILED',
};

/** Starts an agent of the official SDK that does the work of outside-work.ts. */
export async function startScenarioAgent(): Promise<SdkAgent & { gate: Gate }> {
  const agent = await startSdkAgentV1();
  const gate = new Gate();
  agent.executor.execute = async (context, bus) => {
    bus.publish(AgentEvent.task(taskOf(context)));
    for (const step of stepsAfter(messagesOf(context))) await play(step, context, bus, gate);
    bus.finished();
  };
  const close = (): Promise<void> => {
    gate.open();
    return agent.close();
  };
  return { ...agent, gate, close };
}

async function play(step: Step, { taskId, contextId }: RequestContext, bus: ExecutionEventBus, gate: Gate) {
  if (step === 'wait') return gate.passed;
  const { type, artifact, append = false, lastChunk = true, text, error } = step;
  if (type === 'artifact')
    return bus.publish(
      AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ taskId, contextId, artifact, append, lastChunk })),
    );
  const reply: unknown = text ?? error;
  const message = reply !== undefined && {
    messageId: randomUUID(),
    role: 'ROLE_AGENT',
    parts: [{ text: reply }],
    taskId,
    contextId,
  };
  const status = { state: stateOf[type], timestamp: new Date().toISOString(), ...(message && { message }) };
  bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status })));
}

/** Returns the messages of the caller so far, without duplicates: the newest may already be in the history. */
function messagesOf({ task, userMessage }: RequestContext): Wire[] {
  const all = [...(task?.history ?? []), userMessage].map((message) => Message.toJSON(message) as Wire);
  const users = all.filter(({ role }) => role === 'ROLE_USER');
  return users.filter(({ messageId }, index) => users.findIndex((one) => one.messageId === messageId) === index);
}

function taskOf({ taskId, contextId, task, userMessage }: RequestContext): Task {
  const history = (task?.history ?? [userMessage]).map((message) => Message.toJSON(message));
  const status = { state: 'TASK_STATE_WORKING', timestamp: new Date().toISOString() };
  return Task.fromJSON({ id: taskId, contextId, status, history });
}
