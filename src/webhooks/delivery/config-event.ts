import type { Verdict } from './retry-plan.js';

/**
 * A change of a configuration that its org can see: in the audit, as `webhook.<event>`, and in the state that REST
 * shows.
 */
export type ConfigEvent = 'failing' | 'exhausted' | 'disabled' | 'recovered';

/**
 * The events after an attempt. @param state of the configuration before the attempt. `exhausted`: one of its deliveries
 * was given up.
 */
export function configEventsOf(state: 'active' | 'failing', verdict: Verdict): ConfigEvent[] {
  const failing: ConfigEvent[] = state === 'active' ? ['failing'] : [];
  switch (verdict.kind) {
    case 'delivered':
      return state === 'failing' ? ['recovered'] : [];
    case 'retry':
      return failing;
    case 'dead':
      return [...failing, 'exhausted'];
    case 'closed':
      return ['disabled'];
  }
}
