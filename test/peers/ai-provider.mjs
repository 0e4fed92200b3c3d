import { a2a } from 'a2a-ai-provider';
import { generateText, streamText } from 'ai';

const model = a2a(`${process.env.PEER_AGENT}/.well-known/agent-card.json`);
const { text } = await generateText({ model, prompt: 'hello from the AI SDK' });
let streamed = '';
for await (const delta of streamText({ model, prompt: 'hello in pieces' }).textStream) streamed += delta;
const isGood = text.includes('hello from the AI SDK') && streamed.includes('hello in pieces');
console.log(isGood ? 'OK' : 'NO', JSON.stringify([text, streamed]));
