/** A table with rows of orgs, by its column `org_id`. */
export interface OrgTable {
  readonly table: string;
  /** What its lines in an export are called; absent: it is nothing to keep. */
  readonly kind?: string;
  /** Columns that leave this house in no export: secrets, also sealed and hashed ones. */
  readonly withheld?: readonly string[];
  /** Columns with addresses, in whose query their owners like to put secrets. */
  readonly withoutQuery?: readonly string[];
  /** Tables whose rows hang on the `id` of its rows, by this column; they go with them. */
  readonly children?: readonly { readonly table: string; readonly column: string; readonly kind?: string }[];
  /** Stays when its org is deleted: the audit. */
  readonly outlivesOrg?: true;
}
