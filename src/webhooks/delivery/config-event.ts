import type { Verdict } from './retry-plan.js';

/** What an org is told of a configuration: in the audit, as `webhook.<event>`, and in what REST shows of it. */
export type ConfigEvent = 'failing' | 'exhausted' | 'disabled' | 'recovered';

/** @param state of the configuration before the try. `exhausted`: a delivery of it was given up. */
export function eventsOf(state: 'active' | 'failing', verdict: Verdict): ConfigEvent[] {
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
