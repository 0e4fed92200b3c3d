import 'reflect-metadata';
import { CommandError, explain, note } from './cli/io.js';
import { createProgram } from './cli/program.js';
import { environmentOfProcess } from './platform/config/environment.js';

try {
  await createProgram(environmentOfProcess()).parseAsync();
} catch (error) {
  for (const line of explain(error)) note(`rialto: ${line}`);
  process.exitCode = error instanceof CommandError ? error.exitCode : 1;
}
