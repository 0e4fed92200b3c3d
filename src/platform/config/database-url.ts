import { z } from 'zod';

const schemes = ['postgres:', 'postgresql:'];
/**
 * Values of `target_session_attrs` that a writable server satisfies. The gateway replaces connections to a read-only
 * server itself.
 */
const attributes: ReadonlySet<string | null> = new Set([null, 'any', 'read-write', 'primary']);

/** The URL of a PostgreSQL server with one host; a list of hosts, which libpq allows, is refused. */
export const databaseUrl = z.string().superRefine((text, issues) => {
  const refuse = (message: string): void => issues.addIssue({ code: 'custom', message });
  const authority = text.split('/', 3)[2] ?? '';
  if (authority.slice(authority.lastIndexOf('@') + 1).includes(','))
    return refuse(
      'names several hosts: ' +
        'use one address that leads to the writable server, e.g. a service, a virtual IP or a pooler',
    );
  if (!URL.canParse(text) || !schemes.includes(new URL(text).protocol))
    return refuse('must be a URL that starts with postgres:// or postgresql://');
  if (!attributes.has(new URL(text).searchParams.get('target_session_attrs')))
    refuse('allows a read-only server: remove target_session_attrs, or set it to read-write');
});
