/**
 * Metadata key of a part with wrapped data. In v0.3 the data of a part is an object (v0.3 section 6.5.3), in v1.0 any
 * JSON. A value that is not an object is sent as `{ value }` with this key in the part's metadata, as the official SDKs
 * do.
 */
export const wrappedDataKey = 'data_part_compat';
