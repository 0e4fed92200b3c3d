import type { Message } from '../../protocol/a2a/model.js';
import type { Route, RoutedExecutor, RoutesConfig } from '../../registry/published.types.js';

/**
 * Returns the executor for a task: that of the first route of which a word or phrase is in the text of the task's first
 * message, else `otherwise`. All later messages and runs of the task get the same one. Pure.
 */
export function chooseRoute(config: RoutesConfig, history: readonly Pick<Message, 'role' | 'parts'>[]): RoutedExecutor {
  const first = history.find(({ role }) => role === 'ROLE_USER');
  const text = wordsOf((first?.parts ?? []).map((part) => part.text ?? '').join(' '));
  const found = config.routes.find(({ when }: Route) => when.some((phrase) => text.includes(wordsOf(phrase))));
  return (found ?? { executor: config.otherwise }).executor;
}

/** Returns the words of a text in lower case, each between blanks, so that a phrase is found only as whole words. */
function wordsOf(text: string): string {
  return ` ${(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ')} `;
}
