import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { Notices } from './notices.js';
import { NoticeListener } from './on-notice.decorator.js';

/** Connects the methods with `@OnNotice` to their notices, and opens and closes the connection of the notices. */
@Injectable()
export class NoticeWiring implements OnApplicationBootstrap, OnApplicationShutdown {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly notices: Notices,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    for (const wrapper of this.discovery.getProviders()) {
      for (const { methodName, meta } of listenersOf(wrapper.instance as object | undefined)) {
        const instance = wrapper.instance as Record<string, (payload: unknown) => void>;
        this.notices.on(meta, (payload) => instance[methodName]!(payload));
      }
    }
    await this.notices.listen();
  }

  onApplicationShutdown(): Promise<void> {
    return this.notices.close();
  }
}

function listenersOf(instance: object | undefined): { methodName: string; meta: Parameters<Notices['on']>[0] }[] {
  if (!instance || typeof instance !== 'object') return [];
  const prototype = Object.getPrototypeOf(instance) as object | null;
  if (!prototype || prototype === Object.prototype) return [];
  return Object.getOwnPropertyNames(prototype).flatMap((methodName) => {
    const method = Object.getOwnPropertyDescriptor(prototype, methodName)?.value as unknown;
    const meta =
      typeof method === 'function'
        ? (Reflect.getMetadata(NoticeListener.KEY, method) as Parameters<Notices['on']>[0] | undefined)
        : undefined;
    return meta ? [{ methodName, meta }] : [];
  });
}
