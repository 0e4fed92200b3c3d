import { nodeProblem } from './platform/config/node-version.js';

// Every entry imports this first, before any module that an old version cannot load.
const problem = nodeProblem(process.version);
if (problem) process.stderr.write(`${problem.line}\n`);
if (problem?.isFatal) process.exit(1);
