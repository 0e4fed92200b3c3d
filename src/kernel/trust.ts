/** How far an org trusts a registered agent, from the lowest level up. */
export const trustLevels = ['untrusted', 'standard', 'trusted'] as const;
export type TrustLevel = (typeof trustLevels)[number];

/** How well the deployment knows an org: 0 anonymous, 1 builder, 2 verified, 3 organisation (RI-49). */
export const trustTiers = [0, 1, 2, 3] as const;
export type TrustTier = (typeof trustTiers)[number];

/** Returns the tier of an org; orgs without a stated one are builders. */
export function trustTierOf({ trustTier = 1 }: { readonly trustTier?: TrustTier }): TrustTier {
  return trustTier;
}

/** Facts about the message of an act. They are all that policies see of an encrypted message. */
export interface MessageFacts {
  readonly encrypted: boolean;
  /** Size of the ciphertext in bytes; 0 for cleartext. */
  readonly encryptedBytes: number;
  /** Tier of the sender's org for an encrypted message; 0 for cleartext. */
  readonly trustTier: TrustTier;
  /** Names of arguments that have several values in the message, so that no policy can read them. */
  readonly unclear?: readonly string[];
}

/** The facts about every act that sends no encrypted message. */
export const cleartextFacts: MessageFacts = { encrypted: false, encryptedBytes: 0, trustTier: 0 };
