import type { Settings } from '../../config/settings.js';
import type { Metrics } from '../../telemetry/metrics.js';
import { parseAllowList } from './address.js';
import { SafeFetch } from './safe-fetch.js';

/** Creates the outbound client of a deployment. */
export function deploymentFetch(settings: Settings, metrics: Metrics): SafeFetch {
  return new SafeFetch({
    allow: parseAllowList(settings.RIALTO_OUTBOUND_ALLOW),
    httpsOnly: settings.production,
    unanswered: (to) => metrics.ambiguousSends.inc({ to }),
  });
}
