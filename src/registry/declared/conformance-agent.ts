import type { Settings } from '../../platform/config/settings.js';
import { definitionOf } from '../published/published-definition.js';
import type { Definition } from '../published.types.js';

type Profile = NonNullable<Settings['RIALTO_CONFORMANCE_AGENT']>;

const ofOnePointZero: readonly string[] = ['v1', 'nocaps', 'reqext'];
/** The extension that the kit's class REQEXT expects an agent to require. */
const required = [{ uri: 'urn:a2a:tck:required-extension', required: true }];

/**
 * Returns the agent that conformance kits test, in one of its four forms. No single form meets the requirements of all
 * kits.
 */
export function conformanceAgent(profile: Profile): Definition {
  const able = profile !== 'nocaps';
  const definition = definitionOf({
    name: 'conformance',
    description: 'Behaves as conformance kits ask.',
    a2a_enabled: true,
    streaming: able,
    pushNotifications: able,
    // The kits of v1.0 send an unknown media type and expect the agent to refuse it.
    ...(profile !== 'v03' && { defaultInputModes: ['text/plain', 'application/json'] }),
    // The kits call the extended card without a credential.
    extendedCard: false,
    protocolVersions: ofOnePointZero.includes(profile) ? ['1.0'] : ['0.3'],
    ...(profile === 'reqext' && { extensions: required }),
  });
  return { ...definition, executor: { kind: 'conformance' } };
}
