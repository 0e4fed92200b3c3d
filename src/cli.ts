#!/usr/bin/env node
import './v8-flags.js';
import './check-node.js';
import { existsSync } from 'node:fs';

// As in main.ts: a command that reads few files starts in half the time.
const bundle = new URL('../bundle/run-cli.js', import.meta.url);
await (existsSync(bundle) ? import(bundle.href) : import('./run-cli.js'));
