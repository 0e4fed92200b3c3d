import { bellDefects } from './bells.js';
import type { Defect } from './defect.js';
import { doorDefects } from './doors.js';
import { outwardDefects } from './outward.js';
import { taskDefects } from './tasks.js';

export const defects: readonly Defect[] = [...taskDefects, ...bellDefects, ...outwardDefects, ...doorDefects];
