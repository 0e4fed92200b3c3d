/** Counts by path and unit. */
export type Counts = Readonly<Record<string, Readonly<Record<string, number>>>>;

export declare const checkedUnits: readonly string[];

export declare function regressions(
  counts: Counts,
  ledger: readonly { readonly commit: string; readonly counts: Counts }[],
): string[];
