/** A table with rows of orgs, which have the column `org_id`. */
export interface OrgTable {
  readonly table: string;
  /** Kind of its lines in an export. Undefined: the table is not exported. */
  readonly kind?: string;
  /** Columns that an export never contains: secrets, also sealed and hashed ones. */
  readonly withheld?: readonly string[];
  /** Columns with URLs. An export drops their query, because it may hold secrets. */
  readonly withoutQuery?: readonly string[];
  /** Child tables: `column` refers to the `id` of this table. Their rows are exported and deleted with it. */
  readonly children?: readonly { readonly table: string; readonly column: string; readonly kind?: string }[];
  /** True: the rows stay when the org is deleted. Only for the audit. */
  readonly outlivesOrg?: true;
}
