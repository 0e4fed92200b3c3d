import { setFlagsFromString } from 'node:v8';

// Node 20 and 22 abort the process when V8 deoptimises a caller of Cedar's WebAssembly.
// The flag only works before any such caller is optimised, hence the first import of every entry.
setFlagsFromString('--no-turbo-inline-js-wasm-calls');
