import { SignJWT } from 'jose';

export const testSecret = 'kq3-Vt9fB2mZ7xR5wN8pL4sD6gH1jC0yQe';

export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed JSON, or the text when it is not JSON. */
  body: any;
}

/** A client of a running gateway. It calls as admin unless a token is given. */
export interface Caller {
  readonly url: string;
  /** Token of an admin of the default org. */
  readonly token: string;
  call(
    method: string,
    path: string,
    body?: unknown,
    token?: string | null,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  /** Sends one JSON-RPC request to `/mcp` and returns the whole response. */
  rpc(method: string, params?: unknown, token?: string | null, path?: string): Promise<any>;
  /** Creates the org and the member as an operator would, and returns a token of the member. */
  tokenOf(org: string, sub: string, role?: 'viewer' | 'member' | 'admin'): Promise<string>;
}

/**
 * Creates a client of the gateway at `url`.
 * @param secret of the deployment, which signs the tokens of members.
 */
export function callerOf(url: string, token: string, secret = testSecret): Caller {
  const call: Caller['call'] = async (method, path, body, as = token, headers = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(as !== null && { authorization: `Bearer ${as}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    });
    return { status: response.status, headers: response.headers, body: parsed(await response.text()) };
  };
  return {
    url,
    token,
    call,
    rpc: async (method, params, as = token, path = '/mcp') =>
      (await call('POST', path, { jsonrpc: '2.0', id: 1, method, ...(params !== undefined && { params }) }, as)).body,
    tokenOf: async (org, sub, role = 'member') => {
      if (org !== 'default') await call('POST', '/api/orgs', { slug: org });
      await call('POST', `/api/orgs/${org}/members`, { sub, role });
      return signToken({ sub, org_domain: org }, secret);
    },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Signs a token with the test secret. The given claims override the defaults; `undefined` removes a claim. */
export async function signToken(claims: Record<string, unknown> = {}, secret = testSecret): Promise<string> {
  const now = Math.floor(Date.now() / 1_000);
  const all: Record<string, unknown> = {
    iss: 'rialto',
    aud: 'rialto',
    sub: 'bob',
    org_domain: 'default',
    iat: now,
    exp: now + 900,
    ...claims,
  };
  return new SignJWT(JSON.parse(JSON.stringify(all)) as Record<string, unknown>)
    .setProtectedHeader({ alg: 'HS256' })
    .sign(Buffer.from(secret));
}
