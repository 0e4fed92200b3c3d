import { DiscoveryService } from '@nestjs/core';
import type { Notice, NoticeName } from '../../kernel/notices.js';

/** Marks a provider's method as a listener of a notice. A wrong name or payload does not compile. */
export const NoticeListener = DiscoveryService.createDecorator<NoticeName>();

export function OnNotice<Name extends NoticeName>(name: Name) {
  return (target: object, key: string, descriptor: TypedPropertyDescriptor<(payload: Notice<Name>) => void>): void => {
    NoticeListener(name)(target, key, descriptor);
  };
}
