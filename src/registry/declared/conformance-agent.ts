import type { Settings } from '../../platform/config/settings.js';
import { definitionOf } from '../published/published-definition.js';
import type { Definition } from '../published.types.js';

type Profile = NonNullable<Settings['RIALTO_CONFORMANCE_AGENT']>;

const ofOnePointZero: readonly string[] = ['v1', 'nocaps', 'reqext'];
/** The extension that the kit's class REQEXT wants an agent to insist on. */
const required = [{ uri: 'urn:a2a:tck:required-extension', required: true }];

/** The agent that conformance kits are pointed at, in one of the four forms that they ask for together. */
export function conformanceAgent(profile: Profile): Definition {
  const able = profile !== 'nocaps';
  const definition = definitionOf({
    name: 'conformance',
    description: 'Behaves as conformance kits ask.',
    a2a_enabled: true,
    streaming: able,
    pushNotifications: able,
    // The kits of v1.0 send a type that nobody takes, and want it refused.
    ...(profile !== 'v03' && { defaultInputModes: ['text/plain', 'application/json'] }),
    // The kits call the extended card without a credential.
    extendedCard: false,
    protocolVersions: ofOnePointZero.includes(profile) ? ['1.0'] : ['0.3'],
    ...(profile === 'reqext' && { extensions: required }),
  });
  return { ...definition, executor: { kind: 'conformance' } };
}
