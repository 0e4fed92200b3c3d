// `node --import`: moves the wall clock of this process forward by TEST_CLOCK_SKEW_MS milliseconds. Durations do not
// change.
const skewMs = Number(process.env.TEST_CLOCK_SKEW_MS ?? 0);

globalThis.Date = new Proxy(Date, {
  construct: (real, given, target) => Reflect.construct(real, given.length > 0 ? given : [real.now() + skewMs], target),
  apply: (real) => new real(real.now() + skewMs).toString(),
  get: (real, name, receiver) => (name === 'now' ? () => real.now() + skewMs : Reflect.get(real, name, receiver)),
});
