import { setFlagsFromString } from 'node:v8';

// Node 20 and 22 abort the process when V8 deoptimises a caller of Cedar's WebAssembly. The flag works only before any
// such caller is optimised, so every entry imports this file first.
setFlagsFromString('--no-turbo-inline-js-wasm-calls');

/**
 * Keeps the optimised code of the hot paths during pauses. Without it, V8 collects the hidden classes that have no
 * objects in a pause of a few seconds, and with them all code that knows them: the next half second of sends costs four
 * times as much. The price is memory: after load, V8 keeps about 300 MiB that it would release in the pause. Call it
 * when the garbage of the start is collected. Only Node 24 can do this.
 */
export function keepOptimisedCode(): void {
  if (!process.version.startsWith('v24.')) return;
  setFlagsFromString('--retain-maps-for-n-gc=1000');
  setFlagsFromString('--no-memory-reducer-favors-memory');
}
