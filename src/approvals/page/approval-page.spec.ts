import { hash } from 'node:crypto';
import type { ApprovalView } from '../approval.types.js';
import { approvalPage, messagePage, pagePolicy } from './approval-page.js';

describe('the page of an approval', () => {
  const view = {
    state: 'pending',
    mayDecide: true,
    verb: 'bank__pay"><script>1</script>',
    caller: "user:<b>'bob'</b>",
    action: 'mcp_call',
    resource: 'Tool::"bank__pay"',
    policies: ['<i>'],
    approvers: ['finance'],
    expiresAt: '2026-01-01T00:00:00.000Z',
    input: { note: '</pre><img src=x onerror=1>' },
  } as unknown as ApprovalView;

  it('escapes every text of the call', () => {
    const html = approvalPage(view);
    for (const tag of ['<script', '<b>', '<i>', '<img', '</pre><']) expect(html).not.toContain(tag);
    expect(html).toContain('&lt;/pre&gt;&lt;img src=x onerror=1&gt;');
    expect(messagePage('<u>', '<u>')).not.toContain('<u>');
  });

  it('shows characters that have no shape or change the order of others', () => {
    const hidden = ['\u202e', '\u200b', '\u2066', '\u00ad', '\ufe0f', '\u3164', '\u2028', '\u{e0041}'];
    const html = approvalPage({ ...view, caller: `user:${hidden.join('')}`, input: { note: hidden.join('') } });
    for (const sign of hidden) expect(html).not.toContain(sign);
    expect(html.match(/\\u\{202e\}/g)).toHaveLength(2);
    expect(html).toContain('\\u{e0041}');
  });

  it('says that the content of an encrypted message cannot be read', () => {
    const encrypted_payload = Buffer.alloc(64, 1).toString('base64url');
    const sealed = { parts: [{ data: { encrypted_payload, encryption_version: 'hpke-v1' } }] };
    expect(approvalPage({ ...view, input: sealed })).toContain('cannot be read here');
    for (const input of [{ parts: [{ text: 'x' }] }, { parts: [] }, { parts: 'x' }, {}])
      expect(approvalPage({ ...view, input })).not.toContain('cannot be read here');
  });

  it('has a form only while the approval waits and its reader may decide', () => {
    expect(approvalPage(view)).toContain('<form method="post">');
    const shown = approvalPage({ ...view, mayDecide: false });
    expect(shown).not.toContain('<form');
    expect(shown).toContain('Members of finance decide, but never the caller.');
    for (const state of ['approved', 'denied', 'used', 'expired'] as const)
      expect(approvalPage({ ...view, state, mayDecide: false })).not.toContain('<form');
  });

  it('permits its own style only, no script and no frame', () => {
    const [, style] = /<style>([^]*)<\/style>/.exec(approvalPage(view))!;
    expect(pagePolicy).toContain(`style-src 'sha256-${hash('sha256', style!, 'base64')}'`);
    expect(pagePolicy).toContain(`default-src 'none'`);
    expect(pagePolicy).toContain(`frame-ancestors 'none'`);
  });
});
