import type { A2aVersion } from '../model.js';

export type Negotiated =
  { readonly ok: true; readonly version: A2aVersion } | { readonly ok: false; readonly code: 'version_not_supported' };

const notSupported: Negotiated = { ok: false, code: 'version_not_supported' };
const versionShape = /^(\d+\.\d+)(?:\.\d+)?$/;
// 0.2 has the methods, kinds and words of 0.3, so its clients are served as 0.3 ones.
const spoken = new Map<string, A2aVersion>([
  ['1.0', '1.0'],
  ['0.3', '0.3'],
  ['0.2', '0.3'],
]);

/**
 * An `A2A-Version` header (or `?A2A-Version=`) to a version: Major.Minor counts, patch digits do not (v1.0 section 3.6.1); empty or
 * absent is 0.3 (section 3.6.2); undefined for what Rialto does not speak.
 */
export function versionOf(header: string | undefined): A2aVersion | undefined {
  const text = header?.trim() ?? '';
  if (text === '') return '0.3';
  return spoken.get(versionShape.exec(text)?.[1] ?? '');
}

/**
 * The version of a JSON-RPC request. The grammar of its method tells (`SendMessage` is 1.0, `message/send` is 0.3), for clients that
 * name no version speak both; for other methods the header does. A header that names an unknown version is refused whatever the
 * method is: its sender expects something that nobody here knows.
 */
export function negotiate(method: string, versionHeader: string | undefined): Negotiated {
  const version = versionOf(versionHeader);
  if (version === undefined) return notSupported;
  return { ok: true, version: versionOfMethod(method) ?? version };
}

/** The version of a REST request: the paths of 0.3 begin with `/v1` (v0.3 section 3.5), those of 1.0 do not; headers as above. */
export function restVersion(versionHeader: string | undefined, pathHasV1Prefix: boolean): Negotiated {
  if (versionOf(versionHeader) === undefined) return notSupported;
  return { ok: true, version: pathHasV1Prefix ? '0.3' : '1.0' };
}

function versionOfMethod(method: string): A2aVersion | undefined {
  if (method.includes('/')) return '0.3';
  const first = method.charCodeAt(0);
  return first >= 0x41 && first <= 0x5a ? '1.0' : undefined;
}
