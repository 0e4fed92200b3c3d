import { z } from 'zod';

/** `true` or `false`. */
export const flag = z.enum(['true', 'false']).transform((word) => word === 'true');
export const port = z.coerce.number().int().min(0).max(65_535);
/** A URL with one of the protocols. */
export const url = (...protocols: string[]) =>
  z.string().refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol), {
    message: `must be a URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
  });

/** Argument of `refine`: accepts the texts for which the function does not throw. */
export const readableBy = (parse: (text: string) => unknown) => (text: string) => {
  try {
    parse(text);
    return true;
  } catch {
    return false;
  }
};

/** A user and a group, as numbers. */
export const account = z
  .string()
  .regex(/^[1-9]\d{0,9}:\d{1,10}$/, { message: 'must be a user and a group as numbers, such as 65533:65533' })
  .transform((text) => {
    const [uid, gid] = text.split(':').map(Number) as [number, number];
    return { uid, gid };
  });

const exampleSecrets =
  /^(changeme|change-me|secret|password|example|your-|replace|insert|test-secret|a2a-secret|x{8})/i;
/** A secret of the operator: at least 32 bytes, and not an example from a manual. */
export const secret = z
  .string()
  .refine((text) => Buffer.byteLength(text) >= 32, {
    message: 'must be at least 32 bytes; make one with `openssl rand -base64 48`',
  })
  .refine((text) => !exampleSecrets.test(text), {
    message: 'is an example value; make one with `openssl rand -base64 48`',
  });
/** A key that seals stored secrets. */
export const key32 = z.string().refine((text) => Buffer.from(text, 'base64').length === 32, {
  message: 'must be 32 bytes in base64; make one with `openssl rand -base64 32`',
});

/** Strings separated by commas. */
export const list = z.string().transform((text) =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== ''),
);

/** Outside identity providers, each with another issuer: the issuer of a token finds its keys and its org. */
export const identityProviders = list
  .refine((entries) => entries.every((entry) => /^[a-z0-9_-]+=[^|]+\|https?:\/\/\S+$/.test(entry)), {
    message: 'must be a list of `org=issuer|jwks-url`, separated by commas',
    abort: true,
  })
  .superRefine((entries, context) => {
    const issuers = entries.map((entry) => entry.slice(entry.indexOf('=') + 1, entry.indexOf('|')));
    const [twice] = issuers.filter((issuer, at) => issuers.indexOf(issuer) < at);
    if (twice !== undefined) context.addIssue(`names the issuer ${twice} more than once; an issuer belongs to one org`);
  });

/** Arguments of `refine`: each text must be an origin, spelled as URLs spell it. */
export const origins: [(texts: readonly string[]) => boolean, { message: string }] = [
  (texts) => texts.every((text) => URL.canParse(text) && new URL(text).origin === text),
  { message: 'must be a list of origins such as https://keys.example.com, separated by commas' },
];

export const whole = (min: number, max: number) => z.coerce.number().int().min(min).max(max);

/** One setting: its schema, its default and its purpose. The README's table is made from these. */
export interface Setting<Schema extends z.ZodType> {
  schema: Schema;
  fallback: string;
  about: string;
}

export function setting<Schema extends z.ZodType>(schema: Schema, fallback: string, about: string): Setting<Schema> {
  return { schema, fallback, about };
}

/** Describes the problem of a value for readers who do not know the schema library. */
export function readableProblem(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  const what = 'origin' in issue && issue.origin === 'string' ? 'must have' : 'must be';
  const unit = what === 'must have' ? ' characters' : '';
  if (issue.code === 'too_small') return `${what} at least ${issue.minimum}${unit}`;
  if (issue.code === 'too_big') return `${what} at most ${issue.maximum}${unit}`;
  const wholeNumber = issue.code === 'invalid_type' && /^(?:int|number)$/.test(issue.expected);
  return wholeNumber ? 'must be a whole number' : issue.message;
}
