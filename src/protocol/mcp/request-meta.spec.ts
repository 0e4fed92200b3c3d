import { relayedMeta } from './request-meta.js';

describe('what a request says of itself', () => {
  it('goes on to whoever serves it, but for what is of one hop', () => {
    const trace = {
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      tracestate: 'a=1',
      baggage: 'b=2',
    };
    const own = { 'com.example/key': { deep: [1] }, progress: 1 };
    const ofOneHop = { progressToken: 7, 'io.modelcontextprotocol/logLevel': 'debug', 'dev.rialto/server': 'a' };
    expect(relayedMeta({ _meta: { ...trace, ...ofOneHop, ...own } })).toEqual({ ...trace, ...own });
    expect(relayedMeta({ _meta: ofOneHop })).toBeUndefined();
  });

  it.each([undefined, null, 'text', {}, { _meta: null }, { _meta: 'text' }, { _meta: [1] }, { _meta: {} }])(
    'is nothing in %j',
    (params) => expect(relayedMeta(params)).toBeUndefined(),
  );
});
