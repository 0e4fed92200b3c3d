import { AgentCard } from '@a2a-js/sdk';
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';
import { runWhenEntry, serveAgent, type RunningAgent } from './serve-agent.js';
import { requiredText, seedOf, SkillExecutor } from './skill-executor.js';

const skies = ['sunny', 'cloudy', 'rainy', 'windy', 'snowy'];

const skills = [
  {
    id: 'forecast',
    name: 'Forecast',
    description: 'Tells the weather of a city for the coming days.',
    tags: ['weather', 'forecast'],
    examples: ['The weather in Lisbon for three days'],
    inputSchema: {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1, maximum: 7 } },
      required: ['city'],
    },
  },
  {
    id: 'alerts',
    name: 'Alerts',
    description: 'Lists the weather warnings of a region.',
    tags: ['weather', 'alerts'],
  },
];

function forecast(args: Record<string, unknown>): Record<string, unknown> {
  const city = requiredText(args, 'city');
  const days = args.days ?? 1;
  if (!Number.isInteger(days) || Number(days) < 1 || Number(days) > 7) throw new Error('days must be 1 to 7');
  const day = (index: number) => {
    const seed = seedOf(`${city.toLowerCase()} ${index}`);
    return { day: index + 1, sky: skies[seed % skies.length], celsius: (seed % 35) - 5 };
  };
  return { city, days: Array.from({ length: Number(days) }, (_, index) => day(index)) };
}

function alerts(args: Record<string, unknown>): Record<string, unknown> {
  const region = typeof args.region === 'string' ? args.region : 'everywhere';
  return { region, alerts: seedOf(region) % 2 === 0 ? [] : [{ level: 'yellow', kind: 'wind' }] };
}

function cardAt(url: string) {
  return {
    name: 'Weather',
    description: 'Forecasts and warnings, made up but always the same.',
    version: '1.0.0',
    supportedInterfaces: [
      { url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: `${url}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    ],
    capabilities: { streaming: true, pushNotifications: false },
    defaultInputModes: ['application/json', 'text/plain'],
    defaultOutputModes: ['application/json'],
    skills,
  };
}

/** Starts a remote agent of A2A v1.0 for the demo, built with the official SDK: skills `forecast` and `alerts`. */
export function startWeatherAgent(port = 0): Promise<RunningAgent> {
  return serveAgent(port, (url) => {
    const card = cardAt(url);
    const executor = new SkillExecutor({ forecast, alerts }, 'city');
    const requestHandler = new DefaultRequestHandler(AgentCard.fromJSON(card), new InMemoryTaskStore(), executor);
    const handlers = { requestHandler, userBuilder: UserBuilder.noAuthentication };
    return express()
      .get('/.well-known/agent-card.json', (_request, response) => void response.json(card))
      .use('/rpc', jsonRpcHandler(handlers))
      .use('/rest', restHandler(handlers));
  });
}

void runWhenEntry(import.meta.url, startWeatherAgent);
