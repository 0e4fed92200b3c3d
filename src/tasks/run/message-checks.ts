import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { percentDecoded } from '../../kernel/text.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import { isEncrypted } from '../../protocol/a2a/encrypted-parts.js';
import { oversized, type SizeLimits, type TooLarge } from '../../protocol/a2a/message-size.js';
import type { SendParams } from '../../protocol/a2a/request/operations.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { RegistryService } from '../../registry/registry.service.js';

/** Checks messages before a row of them is stored: their sizes, and that no agent writes to itself. */
@Injectable()
export class MessageChecks {
  private readonly sizes: SizeLimits;

  constructor(
    @Inject(SETTINGS) settings: Settings,
    private readonly registry: RegistryService,
    private readonly publicUrl: PublicUrl,
  ) {
    this.sizes = { payloadBytes: settings.RIALTO_MAX_PAYLOAD_BYTES, metadataBytes: settings.RIALTO_MAX_METADATA_BYTES };
  }

  /** Throws `too_large` (RI-47). */
  requireSize({ message, metadata }: Pick<SendParams, 'message' | 'metadata'>): void {
    const found = oversized(message, metadata, this.sizes);
    if (!found) return;
    const { field, bytes, maxBytes } = found;
    throw new RialtoError('too_large', {
      message: `${field} of the message has ${bytes} bytes; at most ${maxBytes} are accepted`,
      hint: hintOf(field, isEncrypted(message.parts)),
      data: { field, bytes, maxBytes },
    });
  }

  /** Throws `unprocessable` when the caller, a registered agent, is the published agent itself (RI-48). */
  async requireOther({ org, principal }: CallContext, agent: PublishedAgent): Promise<void> {
    const sender = (await this.registry.snapshot(org.id)).bySlug.get(principal.id);
    if (!sender) return;
    const { executor } = agent;
    const { row, card } = sender;
    const urls = [row.url, ...(card?.interfaces.map(({ url }) => url) ?? [])];
    const isBehind = executor.kind === 'remote' && executor.agentId === row.id;
    if (!isBehind && !urls.some((url) => this.isDoorOf(url, agent))) return;
    throw new RialtoError('unprocessable', {
      message: `agent "${principal.id}" may not send messages to itself`,
      data: { agent: agent.name },
    });
  }

  /** True when a URL is the address of a published agent at this gateway. */
  private isDoorOf(url: string, { name, handle, org }: PublishedAgent): boolean {
    const door = new URL(`${this.publicUrl.base}/a2a/`);
    if (!URL.canParse(url)) return false;
    const { origin, pathname } = new URL(url);
    if (origin !== door.origin || !pathname.startsWith(door.pathname)) return false;
    const path = pathname.slice(door.pathname.length).replace(/^agents\//, '');
    const called = percentDecoded(path.split('/', 1)[0]!);
    return called !== undefined && [name, handle, `${name}@${org.slug}`].includes(called);
  }
}

function hintOf(field: TooLarge['field'], isSealed: boolean): string {
  if (field === 'metadata') return 'put content into parts';
  return isSealed
    ? 'split the content into several encrypted messages'
    : 'send a file part with the URL of the content';
}
