import { ciFiles, containersOf, objects, podOf } from './support/render.js';
import { withHelm } from './support/tools.js';

const secretNames = /(SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?|KEY)$/;
const secretSettings = ['DATABASE_URL', 'RIALTO_DATABASE_DIRECT_URL', 'REDIS_URL'];

withHelm('secrets', () => {
  it.each(ciFiles)('are only ever references, with ci/%s.yaml', (file) => {
    const all = objects(file);
    const variables = all
      .flatMap((object) => podOf(object) ?? [])
      .flatMap(containersOf)
      .flatMap(({ env }) => env);
    const secret = variables.filter(({ name }) => secretNames.test(name) || secretSettings.includes(name));
    expect(secret.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['DATABASE_URL', 'A2A_SECRET', 'RIALTO_ENCRYPTION_KEY']),
    );
    for (const { value, valueFrom } of secret) {
      expect(value).toBeUndefined();
      expect(valueFrom!.secretKeyRef).toMatchObject({ name: expect.any(String), key: expect.any(String) });
    }
  });

  it.each(ciFiles)('are neither made nor carried by the chart, with ci/%s.yaml', (file) => {
    const all = objects(file);
    expect(all.map(({ kind }) => kind)).not.toContain('Secret');
    const text = JSON.stringify(all);
    expect(text).not.toMatch(/:\/\/[^/"\s]*:[^/"\s]*@/);
    expect(text).not.toMatch(/"(password|token|clientSecret|privateKey)":"/i);
  });
});
