import type { AgentCard, Message as OlderMessage, Task as OlderTask } from 'a2a-js-sdk-0.3';
import type { Task } from '@a2a-js/sdk';
import { sdkClientOfCard, sdkSend, type SdkWire } from './a2a-sdk.js';
import type { OlderSdkClients } from './a2a-sdk-older.js';

/**
 * One interface of a card, with a card that lists only this interface. `spelling` is the version of the members that
 * list it: v1.0 has a list in which each interface has a version, v0.3 has a url and additional interfaces.
 */
export interface ListedInterface extends SdkWire {
  readonly spelling: '1.0' | '0.3';
  readonly url: string;
  readonly card: object;
}

interface ServedCard extends Record<string, unknown> {
  readonly url?: string;
  readonly preferredTransport?: SdkWire['binding'];
  readonly additionalInterfaces?: readonly { url: string; transport: SdkWire['binding'] }[];
  readonly supportedInterfaces?: readonly {
    url: string;
    protocolBinding: SdkWire['binding'];
    protocolVersion: SdkWire['version'];
  }[];
}

/** Returns each interface that a card lists, in both spellings. */
export function interfacesOf(card: ServedCard): ListedInterface[] {
  const { url, preferredTransport, additionalInterfaces = [], supportedInterfaces = [] } = card;
  const newer = supportedInterfaces.map((face): ListedInterface => {
    const { protocolBinding: binding, protocolVersion: version } = face;
    return { spelling: '1.0', version, binding, url: face.url, card: { ...card, supportedInterfaces: [face] } };
  });
  const first = url === undefined ? [] : [{ url, transport: preferredTransport ?? 'JSONRPC' }];
  const older = [...first, ...additionalInterfaces].map((face): ListedInterface => {
    const { transport: binding } = face;
    const only = { ...card, url: face.url, preferredTransport: binding, additionalInterfaces: [] };
    return { spelling: '0.3', version: '0.3', binding, url: face.url, card: only };
  });
  return [...newer, ...older];
}

/**
 * Sends a message to an interface with the official client of the version that lists it, and returns the text of the
 * status. Clients of the line 0.3 read v0.3 members only, so the line 1.x calls what v1.0 members list.
 */
export async function askAt(
  face: ListedInterface,
  clients: OlderSdkClients,
  token: string,
  metadata: Record<string, unknown> = {},
): Promise<string> {
  if (face.spelling === '1.0') {
    const client = await sdkClientOfCard(face.card, face, token);
    const { status } = (await client.sendMessage(sdkSend('Who are you?', { metadata }))) as Task;
    const { content } = status!.message!.parts[0]!;
    return content?.$case === 'text' ? content.value : '';
  }
  const client = await clients.ofCard(face.card as AgentCard, face.binding, token);
  const parts: OlderMessage['parts'] = [{ kind: 'text', text: 'Who are you?' }];
  const message = { kind: 'message', messageId: `m-${Math.random()}`, role: 'user', parts, metadata } as const;
  const { status } = (await client.sendMessage({ message })) as OlderTask;
  const part = status.message!.parts[0]!;
  return part.kind === 'text' ? part.text : '';
}
