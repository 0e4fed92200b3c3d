import './v8-flags.js';
import './check-node.js';

// Loaded after the check: an old version of Node cannot even link it.
await import('./run-gateway.js');
