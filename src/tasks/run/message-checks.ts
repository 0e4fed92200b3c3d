import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
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
    const sender = (await this.registry.snapshot(org.id)).bySlug.get(principal.id)?.row;
    if (!sender) return;
    const { executor } = agent;
    const isBehind = executor.kind === 'remote' && executor.agentId === sender.id;
    if (!isBehind && !this.isDoorOf(sender.url, agent)) return;
    throw new RialtoError('unprocessable', {
      message: `agent "${principal.id}" may not send messages to itself`,
      data: { agent: agent.name },
    });
  }

  /** True when a URL is the address of a published agent at this gateway. */
  private isDoorOf(url: string, { name, handle, org }: PublishedAgent): boolean {
    const { base } = this.publicUrl;
    if (!url.startsWith(`${base}/a2a/`)) return false;
    const path = url.slice(`${base}/a2a/`.length).replace(/^agents\//, '');
    const called = path.split('/', 1)[0]!.replaceAll('%40', '@');
    return [name, handle, `${name}@${org.slug}`].includes(called);
  }
}

function hintOf(field: TooLarge['field'], isSealed: boolean): string {
  if (field === 'metadata') return 'put content into parts';
  return isSealed
    ? 'split the content into several encrypted messages'
    : 'send a file part with the URL of the content';
}
