/**
 * The data of a v0.3 part is an object (v0.3 section 6.5.3), that of v1.0 any JSON. What is no object travels as `{ value }`, and this
 * key in the part's metadata says so. The official SDKs write and read the same.
 */
export const wrappedDataKey = 'data_part_compat';
