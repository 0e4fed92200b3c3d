export interface Step {
  readonly copy?: readonly string[];
  /** Folder of the copies, if it is not the same as in the checkout. */
  readonly to?: string;
  readonly run?: readonly string[];
  readonly arg?: string;
}

export interface Entry {
  readonly name: string;
  readonly stage?: string;
}

export const builds: readonly (readonly string[])[];
export const installProduction: readonly string[];
export const stages: Readonly<Record<'build' | 'deps' | 'tools', readonly Step[]>>;
export const system: readonly string[];
export const entries: readonly Entry[];
export const runtime: {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly uid: number;
  readonly gid: number;
  readonly command: readonly string[];
};
export function isSource(file: string): boolean;
