import type { SafeStream } from './safe-fetch.js';

/** How a reply that is not read to its end began. */
export interface ReplyBeginning {
  readonly text: string;
  /** It went on. */
  readonly isCut: boolean;
}

/** The first bytes of a reply. Throws when it breaks off before, for then nobody knows whether what was sent was taken. */
export async function beginningOf({ body }: Pick<SafeStream, 'body'>, maxBytes: number): Promise<ReplyBeginning> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= maxBytes) break;
    }
  } finally {
    body.destroy();
  }
  return { text: Buffer.concat(chunks).subarray(0, maxBytes).toString('utf8'), isCut: bytes >= maxBytes };
}
