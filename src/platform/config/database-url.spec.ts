import { databaseUrl } from './database-url.js';

const wrong = (text: string): string | undefined => databaseUrl.safeParse(text).error?.issues[0]?.message;

describe('the URL of a database', () => {
  it.each([
    'postgres://rialto:secret@db.example:5432/rialto',
    'postgresql://db/rialto?sslmode=require&target_session_attrs=read-write',
    'postgres://rialto:a,b@db/rialto?options=-c%20a=1,2',
    'postgres:///rialto?host=/run/postgresql',
  ])('is accepted: %s', (text) => expect(wrong(text)).toBeUndefined());

  it.each([
    ['postgres://rialto:secret@one:5432,two:5432/rialto', /names several hosts.*one address/],
    ['postgres://one,two/rialto?target_session_attrs=read-write', /names several hosts/],
    ['postgres://one/rialto?target_session_attrs=standby', /allows a read-only server/],
    ['mysql://one/rialto', /starts with postgres:/],
    ['nonsense', /starts with postgres:/],
  ])('(R5) is refused with the reason: %s', (text, reason) => expect(wrong(text)).toMatch(reason));
});
