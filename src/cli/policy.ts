import type { PolicyView } from '../policy/policy.types.js';
import { note, print, table, type Env } from './io.js';
import { asOperator } from './operator.js';

/** Lists the policies of an org, also when a policy forbids it. */
export async function listPolicies(env: Env, { org }: { org: string }): Promise<void> {
  const rows = await asOperator(env, async (operator) => {
    const ctx = await operator.contextOn(org);
    const all: PolicyView[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await operator.policies.list(ctx, { limit: 200, cursor });
      all.push(...page.items);
      if (page.nextCursor === null) return all;
      cursor = page.nextCursor;
    }
  });
  const cells = rows.map(({ name, version, source, updatedAt }) => [name, String(version), source, updatedAt]);
  print(table([['NAME', 'VERSION', 'SOURCE', 'UPDATED'], ...cells]));
}

/** Deletes a policy of an org, also when it locks callers out, and prints its text so that it can be stored again. */
export async function disablePolicy(env: Env, { org, name }: { org: string; name: string }): Promise<void> {
  const { text, source } = await asOperator(env, async (operator) => {
    const ctx = await operator.contextOn(org);
    const view = await operator.policies.get(ctx, name);
    await operator.policies.remove(ctx, view.id);
    return view;
  });
  note(`${name} is no longer in effect in ${org}; to store it again, use this text:`);
  print(text.trimEnd());
  if (source === 'config') note('the configuration file declares this policy: the next start stores it again');
}
