import * as sdk from '@modelcontextprotocol/client';
import { isReservedMeta, metaKeys } from './meta.js';

describe('keys of _meta', () => {
  it('are those of the official SDK', () => {
    expect(metaKeys).toEqual({
      protocolVersion: sdk.PROTOCOL_VERSION_META_KEY,
      clientInfo: sdk.CLIENT_INFO_META_KEY,
      clientCapabilities: sdk.CLIENT_CAPABILITIES_META_KEY,
      logLevel: sdk.LOG_LEVEL_META_KEY,
      serverInfo: sdk.SERVER_INFO_META_KEY,
    });
  });

  it('are reserved, unlike the keys of others', () => {
    expect(Object.values(metaKeys).every(isReservedMeta)).toBe(true);
    expect(isReservedMeta('dev.rialto/lineage')).toBe(false);
  });
});
