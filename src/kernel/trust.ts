/** How far an org trusts an outside agent, the least first. */
export const trustLevels = ['untrusted', 'standard', 'trusted'] as const;
export type TrustLevel = (typeof trustLevels)[number];
