/** The places, or bytes, of a group, e.g. of an org, of which one member may have at most `ofMember`. */
export interface Places {
  readonly all: number;
  readonly ofMember: number;
}

/**
 * True when a member has its share of the places: `ofMember` while it is alone, and fewer the more others have. So
 * members that give nothing back still leave places for the next one. A member without a place gets any free one.
 *
 * @param own places of the member.
 * @param taken places of all members.
 * @param more places that the member asks for.
 */
export function hasShare(own: number, taken: number, { all, ofMember }: Places, more = 1): boolean {
  if (taken > 0 && taken + more > all) return true;
  return own > 0 && (own + more) * (all - ofMember) > ofMember * (all - taken - more);
}
