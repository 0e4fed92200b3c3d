import { relayedMeta } from './request-meta.js';

describe('the _meta of a request', () => {
  it('is passed on to the server, without the keys of one hop', () => {
    const trace = {
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      tracestate: 'a=1',
      baggage: 'b=2',
    };
    const relayed = { 'com.example/key': { deep: [1] }, progress: 1 };
    const hopByHop = { progressToken: 7, 'io.modelcontextprotocol/logLevel': 'debug', 'dev.rialto/server': 'a' };
    expect(relayedMeta({ _meta: { ...trace, ...hopByHop, ...relayed } })).toEqual({ ...trace, ...relayed });
    expect(relayedMeta({ _meta: hopByHop })).toBeUndefined();
  });

  it.each([undefined, null, 'text', {}, { _meta: null }, { _meta: 'text' }, { _meta: [1] }, { _meta: {} }])(
    'is undefined for %j',
    (params) => expect(relayedMeta(params)).toBeUndefined(),
  );
});
