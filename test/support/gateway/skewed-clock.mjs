// `node --import`: the wall clock of this process is so many milliseconds ahead of the machine's. Durations are not touched.
const skewMs = Number(process.env.TEST_CLOCK_SKEW_MS ?? 0);

globalThis.Date = new Proxy(Date, {
  construct: (real, given, target) => Reflect.construct(real, given.length > 0 ? given : [real.now() + skewMs], target),
  apply: (real) => new real(real.now() + skewMs).toString(),
  get: (real, name, receiver) => (name === 'now' ? () => real.now() + skewMs : Reflect.get(real, name, receiver)),
});
