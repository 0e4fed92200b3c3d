const shape = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;
// The range of a google.protobuf.Timestamp; an offset can move a time out of it.
const [earliest, latest] = [Date.parse('0001-01-01T00:00:00Z'), Date.parse('9999-12-31T23:59:59.999Z')];

/**
 * Parses an RFC 3339 timestamp, which ProtoJSON writes (v1.0 section 5.6.1), to milliseconds since the epoch. Undefined
 * for all other texts and for a day that its month does not have. Accepts any offset and up to nine digits of a second;
 * digits below a millisecond are cut off.
 */
export function timeOf(text: string): number | undefined {
  const found = shape.exec(text);
  if (!found) return undefined;
  const [year, month, day] = [Number(found[1]), Number(found[2]), Number(found[3])];
  if (day > new Date(Date.UTC(year, month, 0)).getUTCDate()) return undefined;
  const time = Date.parse(text);
  return time >= earliest && time <= latest ? time : undefined;
}
