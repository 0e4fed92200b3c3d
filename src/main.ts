import './v8-flags.js';
import './check-node.js';

// Loaded after the version check, because an old version of Node cannot even link this module.
await import('./run-gateway.js');
