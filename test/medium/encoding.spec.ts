import { checkDatabase } from '../../src/platform/database/migrate.js';
import { asAdmin, runPrefix } from '../support/gateway/admin.js';

describe('(R8) the encoding of a database', () => {
  const made: string[] = [];
  afterAll(() =>
    asAdmin(async (client) => {
      for (const name of made) await client.query(`drop database if exists "${name}" with (force)`);
    }),
  );

  async function database(encoding: string): Promise<string> {
    const name = `${runPrefix()}${encoding.toLowerCase()}_${Math.random().toString(36).slice(2)}`;
    await asAdmin(async (client) => {
      await client.query(`create database "${name}" encoding '${encoding}' locale 'C' template template0`);
    });
    made.push(name);
    const url = new URL(process.env.RIALTO_TEST_ADMIN_URL!);
    url.pathname = `/${name}`;
    return url.href;
  }

  it.each(['LATIN1', 'SQL_ASCII'])(
    '%s is refused before any migration, with the statement that creates a correct database',
    async (encoding) => {
      await expect(checkDatabase(await database(encoding), true)).rejects.toThrow(
        `the database has the encoding ${encoding}; ` +
          "create one with create database … encoding 'UTF8' template template0",
      );
    },
  );

  it('UTF8 is accepted', async () => {
    await expect(checkDatabase(await database('UTF8'), true)).resolves.toBeUndefined();
  });
});
