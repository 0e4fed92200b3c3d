/** Schema for the SDK that accepts any value and returns it unchanged. */
export const anyValue = {
  '~standard': { version: 1 as const, vendor: 'rialto', validate: (value: unknown) => ({ value }) },
};
