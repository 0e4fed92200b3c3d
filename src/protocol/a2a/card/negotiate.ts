import type { A2aVersion } from '../model.js';

export type Negotiated =
  { readonly ok: true; readonly version: A2aVersion } | { readonly ok: false; readonly code: 'version_not_supported' };

const notSupported: Negotiated = { ok: false, code: 'version_not_supported' };
const versionShape = /^(\d+\.\d+)(?:\.\d+)?$/;
// 0.2 has the methods, kinds and words of 0.3, so its clients are served as 0.3 clients.
const supported = new Map<string, A2aVersion>([
  ['1.0', '1.0'],
  ['0.3', '0.3'],
  ['0.2', '0.3'],
]);

/**
 * Returns the protocol version that an `A2A-Version` header (or `?A2A-Version=`) asks for. Only Major.Minor counts
 * (v1.0 section 3.6.1); an empty or absent header means 0.3 (section 3.6.2). Undefined when the gateway does not
 * support the version.
 */
export function versionOf(header: string | undefined): A2aVersion | undefined {
  const text = header?.trim() ?? '';
  if (text === '') return '0.3';
  return supported.get(versionShape.exec(text)?.[1] ?? '');
}

/**
 * Chooses the version of a JSON-RPC request. The form of the method name decides (`SendMessage` is 1.0, `message/send`
 * is 0.3), because clients without a header use both. For other method names the header decides. A header with an
 * unknown version is refused for every method, because the gateway does not know what its sender expects.
 */
export function negotiate(method: string, versionHeader: string | undefined): Negotiated {
  const version = versionOf(versionHeader);
  if (version === undefined) return notSupported;
  return { ok: true, version: versionOfMethod(method) ?? version };
}

/**
 * Chooses the version of a REST request: paths of 0.3 begin with `/v1` (v0.3 section 3.5), those of 1.0 do not. Headers
 * are treated as in `negotiate`.
 */
export function restVersion(versionHeader: string | undefined, pathHasV1Prefix: boolean): Negotiated {
  if (versionOf(versionHeader) === undefined) return notSupported;
  return { ok: true, version: pathHasV1Prefix ? '0.3' : '1.0' };
}

function versionOfMethod(method: string): A2aVersion | undefined {
  if (method.includes('/')) return '0.3';
  const first = method.charCodeAt(0);
  return first >= 0x41 && first <= 0x5a ? '1.0' : undefined;
}
