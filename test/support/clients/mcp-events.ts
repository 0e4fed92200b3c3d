/** A reader of server-sent events, message by message. Comments are skipped. */
export interface EventReader {
  readonly status: number;
  readonly headers: Headers;
  /** Reads the next message; undefined at the end of the stream. */
  next(): Promise<any>;
  /** Reads all messages until the end. */
  rest(): Promise<any[]>;
  /** Disconnects, as a client that goes away does. */
  close(): void;
}

export interface EventRequest {
  readonly method?: string;
  readonly token: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

/** Sends a request and reads the streamed answer. Resolves when the headers of the answer arrive. */
export async function openEvents(
  url: string,
  { method = 'GET', token, headers, body }: EventRequest,
): Promise<EventReader> {
  const leaving = new AbortController();
  const response = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: leaving.signal,
  });
  // The iterator locks the body at once: fetch cancels an unread body when its response is collected as garbage.
  const messages = messagesOf(response.body!.values() as AsyncIterable<Uint8Array>);
  const next = async () => (await messages.next()).value;
  return {
    status: response.status,
    headers: response.headers,
    next,
    rest: async () => {
      const all: unknown[] = [];
      for await (const message of messages) all.push(message);
      return all;
    },
    close: () => leaving.abort(),
  };
}

async function* messagesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<unknown, undefined> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const data = text
        .slice(0, end)
        .split('\n')
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trim())
        .join('\n');
      text = text.slice(end + 2);
      if (data !== '') yield JSON.parse(data) as unknown;
    }
  }
  return undefined;
}
