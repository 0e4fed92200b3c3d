/**
 * True in a hosted production runtime (AN-44…AN-46). A variable set by the platform wins over NODE_ENV; an explicit
 * development or test wins over Kubernetes alone; an unknown host without NODE_ENV counts as production.
 */
export function isProductionRuntime(env: Record<string, string | undefined>, globals: object = globalThis): boolean {
  const hosted =
    (isSet(env.NETLIFY) && !isSet(env.NETLIFY_LOCAL)) ||
    isSet(env.AWS_LAMBDA_FUNCTION_NAME) ||
    env.CF_PAGES === '1' ||
    '__cf_env' in globals ||
    '__env__' in globals ||
    isSet(env.VERCEL) ||
    isSet(env.VERCEL_ENV) ||
    isSet(env.RENDER) ||
    isSet(env.FLY_APP_NAME) ||
    isSet(env.K_SERVICE);
  return hosted || (env.NODE_ENV !== 'development' && env.NODE_ENV !== 'test');
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== '' && value !== 'false' && value !== '0';
}
