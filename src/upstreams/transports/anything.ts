/** A schema for the SDK that hands on whatever a server says, unread. */
export const anything = {
  '~standard': { version: 1 as const, vendor: 'rialto', validate: (value: unknown) => ({ value }) },
};
