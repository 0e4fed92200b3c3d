import { RialtoError } from '../../../kernel/errors.js';

/** Awaits a server that starts to listen. Throws `unavailable` with one line that names the setting of its port. */
export async function listening<Result>(setting: string, port: number, listen: Promise<Result>): Promise<Result> {
  try {
    return await listen;
  } catch (cause) {
    const { code } = cause as { code?: string };
    const reason =
      code === 'EADDRINUSE'
        ? `${port} is in use; choose another${setting === 'METRICS_PORT' ? ', or 0 for none' : ', 0 takes a free one'}`
        : code === 'EACCES'
          ? `this user may not open ${port}`
          : code === 'EADDRNOTAVAIL'
            ? 'HOST is not an address of this machine'
            : String(code);
    throw new RialtoError('unavailable', { message: `${setting}: ${reason}`, cause });
  }
}
