import './v8-flags.js';
import './check-node.js';
import { existsSync } from 'node:fs';

// The build also joins the gateway and its packages into a few files, because reading each file takes half of a start.
const bundle = new URL('../bundle/run-gateway.js', import.meta.url);
// Loaded after the version check, because an old version of Node cannot even link this module.
await (existsSync(bundle) ? import(bundle.href) : import('./run-gateway.js'));
