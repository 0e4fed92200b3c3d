import { runJwtStrategy } from './passport-jwt.js';

describe('the strategy of passport-jwt', () => {
  it('gives the token to our verifier and returns its result', async () => {
    const verify = jest.fn().mockResolvedValue('verified');
    expect(await runJwtStrategy({ headers: {} }, 'a.b.c', verify)).toBe('verified');
    expect(verify.mock.calls).toEqual([['a.b.c']]);
  });

  it('rejects with the error of our verifier', async () => {
    const refused = new Error('refused');
    await expect(runJwtStrategy({ headers: {} }, 'a.b.c', () => Promise.reject(refused))).rejects.toBe(refused);
  });
});
