import { percentDecoded } from '../../kernel/text.js';

/*
 * Reads the request of a token endpoint (RFC 6749 sections 4.4 and 5.2), pure: the grant `client_credentials`, with the
 * client's id and secret in a Basic header or in the form.
 */

export type TokenFault = 'invalid_request' | 'invalid_client' | 'unsupported_grant_type' | 'invalid_scope';

export type TokenRequest =
  | { readonly ok: true; readonly clientId: string; readonly clientSecret: string }
  | { readonly ok: false; readonly error: TokenFault; readonly description: string };

const formType = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;
const formBody =
  'the body must be application/x-www-form-urlencoded, such as ' +
  'grant_type=client_credentials&client_id=ID&client_secret=KEY';

export function readTokenRequest(
  body: string,
  { authorization, 'content-type': type = '' }: { readonly authorization?: string; readonly 'content-type'?: string },
): TokenRequest {
  // curl names a form as the type of every body.
  const isJson = body.trimStart().startsWith('{');
  if (!formType.test(type) || isJson) return fault('invalid_request', formBody);
  const form = new URLSearchParams(body);
  const seen = new Set<string>();
  const repeated = [...form.keys()].find((name) => seen.size === seen.add(name).size);
  if (repeated !== undefined) return fault('invalid_request', `${repeated.slice(0, 50)} is given more than once`);
  const grant = form.get('grant_type');
  if (grant === null) return fault('invalid_request', 'grant_type is missing');
  if (grant !== 'client_credentials')
    return fault('unsupported_grant_type', 'the only grant_type is client_credentials');
  if (form.get('scope')) return fault('invalid_scope', 'there are no scopes: a token has the rights of its key');
  const given = authorization === undefined ? formCredentials(form) : basicCredentials(authorization);
  if (authorization !== undefined && form.has('client_secret'))
    return fault('invalid_request', 'send the client secret in the Authorization header or in the form, not in both');
  return given ? { ok: true, ...given } : fault('invalid_client', 'send the id and the secret of an API key');
}

function fault(error: TokenFault, description: string): TokenRequest {
  return { ok: false, error, description };
}

interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
}

function formCredentials(form: URLSearchParams): Credentials | undefined {
  const [clientId, clientSecret] = [form.get('client_id'), form.get('client_secret')];
  return clientId && clientSecret ? { clientId, clientSecret } : undefined;
}

/** Id and secret are form-encoded before they are joined (RFC 6749 section 2.3.1). */
function basicCredentials(header: string): Credentials | undefined {
  const [, encoded] = /^basic ([\w+/=-]{1,2000})$/i.exec(header) ?? [];
  const [, id, secret] = /^([^:]+):(.+)$/.exec(Buffer.from(encoded ?? '', 'base64').toString()) ?? [];
  const clientId = percentDecoded(id ?? '');
  const clientSecret = percentDecoded(secret ?? '');
  return clientId && clientSecret ? { clientId, clientSecret } : undefined;
}
