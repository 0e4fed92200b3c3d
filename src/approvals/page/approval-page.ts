import { hash } from 'node:crypto';
import { isJsonObject } from '../../kernel/json.js';
import { isEncrypted } from '../../protocol/a2a/encrypted-parts.js';
import type { ApprovalView } from '../approval.types.js';

const style = `
:root { color-scheme: light dark; --line: #d0d7de; --soft: #57606a; --card: #ffffff; --back: #f6f8fa; --text: #1f2328;
  --go: #1a7f37; --stop: #b42318; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3d444d; --soft: #9aa4b0; --card: #151b23; --back: #0d1117; --text: #f0f6fc; --go: #2ea043;
    --stop: #f0655a; }
}
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 42rem; margin: 1rem auto; padding: 1.25rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .75rem; }
h1 { margin: 0 0 .75rem; font-size: 1.35rem; line-height: 1.3; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1rem; margin: 0 0 1rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
pre { margin: 0 0 1rem; padding: .75rem; max-height: 24rem; overflow: auto; border: 1px solid var(--line);
  border-radius: .5rem; font: .875rem/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
label { display: block; margin-bottom: 1rem; color: var(--soft); }
input { display: block; width: 100%; margin-top: .25rem; padding: .6rem; font: inherit; color: var(--text);
  background: var(--back); border: 1px solid var(--line); border-radius: .5rem; }
.buttons { display: flex; flex-wrap: wrap; gap: .75rem; }
button { flex: 1 1 8rem; min-height: 2.75rem; font: inherit; font-weight: 600; border-radius: .5rem; cursor: pointer;
  border: 1px solid var(--go); background: var(--go); color: #fff; }
button.stop { background: transparent; border-color: var(--stop); color: var(--stop); }
@media (max-width: 30rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; } }
`;

/** The page loads nothing, runs no script, sends its form only to this gateway, and no page may frame it. */
export const pagePolicy = [
  `default-src 'none'`,
  `style-src 'sha256-${hash('sha256', style, 'base64')}'`,
  `form-action 'self'`,
  `frame-ancestors 'none'`,
  `base-uri 'none'`,
].join('; ');

/** Renders the page of an approval: the act, and the form while its reader may decide. */
export function approvalPage(view: ApprovalView): string {
  const { caller, resource, policies, approvers, expiresAt, input } = view;
  const facts: [string, string][] = [
    ['Caller', caller],
    ['Action', view.action],
    ['Resource', resource],
    ['Asked by policy', policies.join(', ')],
    ['Approvers', approvers.join(' and ')],
    ['Waits until', expiresAt],
  ];
  const rows = facts.map(([name, value]) => `<dt>${escaped(name)}</dt><dd>${escaped(value)}</dd>`).join('');
  const note = isSealed(input) ? `<p>${sealedNote}</p>\n` : '';
  return page(
    `Approve ${view.verb}?`,
    `<dl>${rows}</dl>
${note}<pre tabindex="0" aria-label="Content of the call">${escaped(JSON.stringify(input, null, 2))}</pre>
${view.mayDecide ? form : `<p role="status">${escaped(statusOf(view))}</p>`}`,
  );
}

const sealedNote =
  'The message is encrypted for its receiver, and cannot be read here. Decide by its caller and its receiver.';

function isSealed({ parts }: ApprovalView['input']): boolean {
  return Array.isArray(parts) && parts.every(isJsonObject) && isEncrypted(parts);
}

function statusOf({ state, approvers }: ApprovalView): string {
  if (state !== 'pending') return `This approval is ${state}.`;
  return `This approval waits. Members of ${approvers.join(' and ')} decide, but never the caller.`;
}

const form = `<form method="post">
<label>Reason (optional, the caller sees it)<input name="reason" maxlength="500" autocomplete="off"></label>
<div class="buttons">
<button name="decision" value="approve">Approve once</button>
<button name="decision" value="deny" class="stop">Deny</button>
</div>
</form>`;

/** Renders the page after a decision, or of an error. */
export function messagePage(title: string, text: string): string {
  return page(title, `<p role="status">${escaped(text)}</p>`);
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
${body}
</main>
</body>
</html>
`;
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Characters without a shape, and those that change the order of others: they would hide text from the approver. */
const invisible = /[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

function escaped(text: string): string {
  return text
    .replaceAll(/[&<>"']/g, (sign) => entities[sign]!)
    .replaceAll(invisible, (sign) => `\\u{${sign.codePointAt(0)!.toString(16)}}`);
}
