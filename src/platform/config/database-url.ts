import { z } from 'zod';

const schemes = ['postgres:', 'postgresql:'];
/** What a gateway can promise of its server, which has to take writes; a line to one that only reads is made anew. */
const attributes: ReadonlySet<string | null> = new Set([null, 'any', 'read-write', 'primary']);

/** The address of a PostgreSQL server as its driver takes it: of one host, which libpq's list of several is not (R5). */
export const databaseUrl = z.string().superRefine((text, issues) => {
  const refuse = (message: string): void => issues.addIssue({ code: 'custom', message });
  const authority = text.split('/', 3)[2] ?? '';
  if (authority.slice(authority.lastIndexOf('@') + 1).includes(','))
    return refuse(
      'names several hosts: name one address that leads to the server which takes writes, e.g. a service, a virtual IP or a pooler',
    );
  if (!URL.canParse(text) || !schemes.includes(new URL(text).protocol))
    return refuse('must be a URL that starts with postgres:// or postgresql://');
  if (!attributes.has(new URL(text).searchParams.get('target_session_attrs')))
    refuse('asks for a server that need not take writes: leave target_session_attrs out, or name read-write');
});
