import { bellScenarios } from './bells.js';
import { doorScenarios } from './doors.js';
import { outwardScenarios } from './outward.js';
import type { Scenario, ScenarioName } from './scenario.js';
import { workScenarios } from './work.js';

export const scenarios: readonly Scenario[] = [
  ...workScenarios,
  ...bellScenarios,
  ...doorScenarios,
  ...outwardScenarios,
];

export function scenarioOf(name: ScenarioName): Scenario {
  return scenarios.find((scenario) => scenario.name === name)!;
}
