import type { RoutesConfig } from '../../registry/published.types.js';
import { chooseRoute } from './route-choice.js';

describe('chooseRoute', () => {
  const config: RoutesConfig = {
    kind: 'routes',
    routes: [
      { when: ['refund', 'money back'], executor: { kind: 'mcp-tool', serverId: 'bank', tool: 'refund' } },
      { when: ['Größe'], executor: { kind: 'remote', agentId: 'a' } },
    ],
    otherwise: { kind: 'echo' },
  };
  const routeOf = (...texts: string[]) =>
    chooseRoute(
      config,
      texts.map((text, index) => ({ role: index % 2 === 0 ? 'ROLE_USER' : 'ROLE_AGENT', parts: [{ text }] })),
    ).kind;

  it.each([
    ['a word', 'I want a refund!', 'mcp-tool'],
    ['a phrase, in any case and with other spaces', 'Give me my MONEY\n back', 'mcp-tool'],
    ['letters of any language', 'welche größe?', 'remote'],
    ['part of a word', 'refundable', 'echo'],
    ['words in another order', 'back money', 'echo'],
    ['no text', '', 'echo'],
    ['the first of two routes', 'größe or refund', 'mcp-tool'],
  ])('by %s', (_, text, kind) => {
    expect(routeOf(text)).toBe(kind);
  });

  it('by the first message of a task, not by later ones', () => {
    expect(routeOf('hello', 'what?', 'refund')).toBe('echo');
    expect(routeOf('refund', 'which?', 'hello')).toBe('mcp-tool');
    expect(chooseRoute(config, [{ role: 'ROLE_USER', parts: [{ data: 'refund' }] }]).kind).toBe('echo');
  });
});
