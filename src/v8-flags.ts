import { setFlagsFromString } from 'node:v8';

// Node 20 and 22 abort the process when V8 deoptimises a caller of Cedar's WebAssembly. The flag works only before any
// such caller is optimised, so every entry imports this file first.
setFlagsFromString('--no-turbo-inline-js-wasm-calls');
