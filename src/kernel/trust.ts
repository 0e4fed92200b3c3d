/** How far an org trusts a registered agent, from the lowest level up. */
export const trustLevels = ['untrusted', 'standard', 'trusted'] as const;
export type TrustLevel = (typeof trustLevels)[number];
